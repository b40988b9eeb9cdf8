// Everything: #include <rondo/rondo.hpp>.
#pragma once

#include <rondo/communicator.hpp>
#include <rondo/version.hpp>
