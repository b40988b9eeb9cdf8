// The Python module rondo_torch._C.
#include "backend.hpp"
#include "farewell.hpp"

#include <rondo/version.hpp>

#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/extension.h>
#include <torch/version.h>

#include <chrono>
#include <string>
#include <vector>

namespace {

using rondo_torch::BackendRondo;

c10::intrusive_ptr<c10d::Backend> create_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                                 std::chrono::milliseconds timeout, const std::string& group_name,
                                                 std::vector<std::uint64_t> global_ranks, const std::string& name) {
  auto options = c10::make_intrusive<BackendRondo::Options>(timeout);
  options->group_name = group_name;
  options->global_ranks_in_group = std::move(global_ranks);
  return c10::make_intrusive<BackendRondo>(store, rank, size, std::move(options), name);
}

}  // namespace

PYBIND11_MODULE(_C, module) {
  namespace py = pybind11;
  py::module_::import("torch._C._distributed_c10d");
  module.attr("torch_version") = TORCH_VERSION;
  module.attr("rondo_version") = rondo::version();
  module.def("create_backend", &create_backend, py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"),
             py::arg("group_name"), py::arg("global_ranks"), py::arg("name") = "rondo",
             py::call_guard<py::gil_scoped_release>());
  module.def("wait_for_farewells", &rondo_torch::wait_for_farewells, py::arg("patience"),
             py::call_guard<py::gil_scoped_release>());
}
