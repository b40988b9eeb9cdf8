// The Python module rondo_torch._C.
#include "arena.hpp"
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
                                                 std::vector<std::uint64_t> global_ranks, const std::string& title) {
  auto options = c10::make_intrusive<BackendRondo::Options>(timeout);
  options->group_name = group_name;
  options->global_ranks_in_group = std::move(global_ranks);
  return c10::make_intrusive<BackendRondo>(store, rank, size, std::move(options), title);
}

std::shared_ptr<rondo_torch::Arena> reserve(const c10::intrusive_ptr<c10d::Backend>& backend, std::int64_t bytes) {
  TORCH_CHECK_VALUE(bytes > 0, "rondo: ", bytes, " bytes of window memory; reserve at least 1");
  auto* ours = dynamic_cast<BackendRondo*>(backend.get());
  TORCH_CHECK_VALUE(ours != nullptr, "rondo: the group's backend is ", backend->getBackendName(),
                    "; window memory belongs to a group of rondo");
  return ours->reserve(static_cast<std::size_t>(bytes));
}

}  // namespace

PYBIND11_MODULE(_C, module) {
  namespace py = pybind11;
  py::module_::import("torch._C._distributed_c10d");
  module.attr("torch_version") = TORCH_VERSION;
  module.attr("rondo_version") = rondo::version();
  module.def("create_backend", &create_backend, py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"),
             py::arg("group_name"), py::arg("global_ranks"), py::arg("title") = "rondo",
             py::call_guard<py::gil_scoped_release>());
  using rondo_torch::Arena;
  py::class_<Arena, std::shared_ptr<Arena>>(module, "Arena", py::module_local())
      .def_property_readonly("bytes", &Arena::bytes)
      .def_property_readonly("used", &Arena::used);
  module.def("reserve", &reserve, py::arg("backend"), py::arg("bytes"), py::call_guard<py::gil_scoped_release>());
  module.def("use_for_large_tensors", &rondo_torch::use_for_large_tensors, py::arg("arena"), py::arg("smallest"));
  module.def("arena_in_use", &rondo_torch::arena_in_use);
  module.def("wait_for_farewells", &rondo_torch::wait_for_farewells, py::arg("patience"),
             py::call_guard<py::gil_scoped_release>());
}
