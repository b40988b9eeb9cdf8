// The command line of the benchmark programs, a line an argument.
#include "perf/harness/options.hpp"

#include "harness/target.hpp"

namespace rondo::fuzz {

std::vector<Bytes> seeds() {
  std::vector<Bytes> inputs;
  for (const char* text :
       {"-b\n8\n-e\n64M\n-f\n4\n-c\n1", "-b1K\n-e4KiB\n-i512B\n-d\nall\n-o\nall\n-r\nall\n-R\n2",
        "--minbytes=8\n--maxbytes=1G\n--stepfactor=2\n--datatype=half\n--op=avg\n-J\nout.json",
        "-n\n5\n-w\n0\n-m\n2\n-N\n0\n-T\n9\n-a\n3\n-I\n1\n-S\n0\n-M\n1\n-t\n1\n-g\n1\n-z\n0", "--help"}) {
    inputs.push_back(bytes_of(text));
  }
  return inputs;
}

bool parse(std::span<const std::byte> input) {
  try {
    const perf::Options options = perf::parse_options(lines_of(input));
    if (options.help) return true;  // nothing else was judged
    const auto sizes = perf::sweep(options);
    require(sizes.size() <= 65536, "a sweep has an end");
    require(!sizes.empty() && sizes.front() == options.min_bytes && sizes.back() <= options.max_bytes,
            "a sweep goes from the smallest size to the largest at most");
    require(std::adjacent_find(sizes.begin(), sizes.end(), std::greater_equal<>()) == sizes.end(), "a sweep rises");
    for (const DataType type : perf::types_of(options)) {
      for (const ReduceOp op : perf::ops_of(options, type))
        require(perf::is_valid(type, op), "an operator fits its type");
    }
    perf::roots_of(options, 4);
  } catch (const perf::UsageError&) {
    return false;
  }
  return true;
}

}  // namespace rondo::fuzz
