// Symbol visibility: everything is hidden except what is marked RONDO_API.
#pragma once

#if defined(__GNUC__)
#define RONDO_API __attribute__((visibility("default")))
#else
#define RONDO_API
#endif
