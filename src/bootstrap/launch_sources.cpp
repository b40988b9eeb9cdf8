#include "bootstrap/launch_sources.hpp"

#include <rondo/error.hpp>

#include "base/environment.hpp"
#include "base/format.hpp"
#include "bootstrap/nodelist.hpp"

#include <fmt/format.h>

#include <limits>
#include <vector>

namespace rondo::bootstrap {

namespace {

// Rank and size as one launcher states them.
struct Statement {
  std::string source;
  std::string rank_variable;
  std::string size_variable;
  int rank = 0;
  int size = 0;
};

std::string value_of(const Lookup& lookup, const std::string& name) {
  const std::optional<std::string> value = lookup(name);
  return value ? *value : std::string();
}

std::optional<Statement> read_statement(const Lookup& lookup, const std::string& source,
                                        const std::string& rank_variable, const std::string& size_variable) {
  const bool has_rank = !value_of(lookup, rank_variable).empty();
  const bool has_size = !value_of(lookup, size_variable).empty();
  if (!has_rank && !has_size) return std::nullopt;
  if (has_rank != has_size) {
    throw Error(ErrorCode::configuration,
                fmt::format("{} is set but {} is not", has_rank ? rank_variable : size_variable,
                            has_rank ? size_variable : rank_variable),
                fmt::format("set both, for example {}=0 {}=4, or unset both", rank_variable, size_variable));
  }
  Statement s{source, rank_variable, size_variable, 0, 0};
  const std::int64_t size = *base::read_integer(lookup, size_variable, 1, std::numeric_limits<int>::max());
  const std::int64_t rank = *base::read_integer(lookup, rank_variable, 0, std::numeric_limits<int>::max());
  if (rank >= size) {
    throw Error(ErrorCode::configuration,
                fmt::format("{}={} must be less than {}={}", rank_variable, rank, size_variable, size),
                fmt::format("ranks count from 0 to {}", size - 1));
  }
  s.rank = static_cast<int>(rank);
  s.size = static_cast<int>(size);
  return s;
}

std::vector<Statement> read_statements(const Lookup& lookup) {
  std::vector<Statement> statements;
  const auto add = [&](const std::string& source, const std::string& rank, const std::string& size) {
    if (auto s = read_statement(lookup, source, rank, size)) statements.push_back(std::move(*s));
  };
  add("rondo run", "RONDO_RANK", "RONDO_SIZE");
  add("torchrun", "RANK", "WORLD_SIZE");
  const bool within_agent = !value_of(lookup, "TORCHELASTIC_RUN_ID").empty();
  if (within_agent) return statements;
  const std::size_t before = statements.size();
  add("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
  if (statements.size() > before) return statements;
  // A batch script has SLURM_PROCID=0 too, whatever the number of tasks; only srun makes a step.
  const bool in_step = !value_of(lookup, "SLURM_STEP_ID").empty() || !value_of(lookup, "SLURM_STEP_NODELIST").empty();
  if (in_step && !value_of(lookup, "SLURM_PROCID").empty()) {
    const bool step_size = !value_of(lookup, "SLURM_STEP_NUM_TASKS").empty();
    add("Slurm", "SLURM_PROCID", step_size ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS");
  }
  return statements;
}

void require_agreement(const std::vector<Statement>& statements) {
  const Statement& first = statements.front();
  for (const Statement& other : statements) {
    const bool rank_differs = other.rank != first.rank;
    if (!rank_differs && other.size == first.size) continue;
    const std::string& a = rank_differs ? first.rank_variable : first.size_variable;
    const std::string& b = rank_differs ? other.rank_variable : other.size_variable;
    throw Error(
        ErrorCode::configuration,
        fmt::format("{} ({}={}) and {} ({}={}) disagree about this process", first.source, a,
                    rank_differs ? first.rank : first.size, other.source, b, rank_differs ? other.rank : other.size),
        fmt::format("unset the variables of the one that did not start the ranks, for example: env -u {} -u {}",
                    other.rank_variable, other.size_variable));
  }
}

bool is_loopback(const std::string& host) { return host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0; }

// "host:port" or "[2001:db8::1]:port".
void read_root(const std::string& text, LaunchDescription& d) {
  const std::size_t colon = text.rfind(':');
  std::string host = text.substr(0, colon == std::string::npos ? 0 : colon);
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  const std::int64_t port = colon == std::string::npos ? 0 : base::parse_integer(text.substr(colon + 1)).value_or(0);
  if (host.empty() || (!bracketed && host.find(':') != std::string::npos) || port < 1 || port > 65535) {
    base::refuse_value("RONDO_ROOT", text, "must be host:port with a port from 1 to 65535 ([..]:port for IPv6)");
  }
  d.root_host = host;
  d.root_port = static_cast<std::uint16_t>(port);
}

bool everyone_is_local(const Lookup& lookup, const std::string& local_size_variable, int size) {
  return base::read_integer(lookup, local_size_variable, 1, std::numeric_limits<int>::max()) == size;
}

void describe_torchrun(const Lookup& lookup, LaunchDescription& d) {
  d.root_host = value_of(lookup, "MASTER_ADDR");
  const auto port = base::read_integer(lookup, "MASTER_PORT", 1, 65535);
  if (d.root_host.empty() || !port) {
    throw Error(
        ErrorCode::configuration,
        fmt::format("RANK and WORLD_SIZE are set but {} is not", d.root_host.empty() ? "MASTER_ADDR" : "MASTER_PORT"),
        "for example MASTER_ADDR=127.0.0.1 MASTER_PORT=29500");
  }
  d.root_port = port_beside(static_cast<std::uint16_t>(*port));
  d.job = fmt::format("torchrun {}", value_of(lookup, "TORCHELASTIC_RUN_ID"));
  d.single_host = is_loopback(d.root_host) || everyone_is_local(lookup, "LOCAL_WORLD_SIZE", d.size);
}

void describe_open_mpi(const Lookup& lookup, LaunchDescription& d) {
  if (!everyone_is_local(lookup, "OMPI_COMM_WORLD_LOCAL_SIZE", d.size)) {
    throw Error(ErrorCode::configuration,
                fmt::format("Open MPI's {} ranks are on several hosts and its environment does not say where rank 0 is",
                            d.size),
                "give rank 0's host and a free port there: mpirun -x RONDO_ROOT=10.0.0.1:29555 ...");
  }
  std::string job = value_of(lookup, "PMIX_NAMESPACE");
  if (job.empty()) job = value_of(lookup, "OMPI_MCA_ess_base_jobid");
  if (job.empty()) {
    throw Error(
        ErrorCode::configuration,
        "neither PMIX_NAMESPACE nor OMPI_MCA_ess_base_jobid is set, so Open MPI's job cannot be told from others",
        "give a free port: mpirun -x RONDO_ROOT=127.0.0.1:29555 ...");
  }
  d.job = fmt::format("Open MPI {}", job);
  d.root_host = "127.0.0.1";
  d.root_port = port_of_job(d.job);
  d.single_host = true;
}

void describe_slurm(const Lookup& lookup, LaunchDescription& d) {
  std::string variable = "SLURM_STEP_NODELIST";
  if (value_of(lookup, variable).empty()) variable = "SLURM_JOB_NODELIST";
  const std::string list = value_of(lookup, variable);
  const std::string job = value_of(lookup, "SLURM_JOB_ID");
  if (list.empty() || job.empty()) {
    throw Error(ErrorCode::configuration,
                fmt::format("SLURM_PROCID is set but {} is not", list.empty() ? "SLURM_STEP_NODELIST" : "SLURM_JOB_ID"),
                "give rank 0's host and a free port there: RONDO_ROOT=10.0.0.1:29555");
  }
  const std::vector<std::string> hosts = expand_nodelist(variable, list);
  d.job = fmt::format("Slurm {}.{}", job, value_of(lookup, "SLURM_STEP_ID"));
  d.root_host = hosts.front();
  d.root_port = port_of_job(d.job);
  d.single_host = hosts.size() == 1;
}

}  // namespace

std::uint16_t port_beside(std::uint16_t master_port) {
  if (master_port == 65535 || master_port < 1023) return 1024;
  return static_cast<std::uint16_t>(master_port + 1);
}

std::uint16_t port_of_job(std::string_view job) {
  // FNV-1a, 64 bits: alike on every host, whatever its standard library.
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : job) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return static_cast<std::uint16_t>(20000 + (hash ^ hash >> 32) % 10000);
}

LaunchDescription describe_launch(const Lookup& lookup) {
  const std::vector<Statement> statements = read_statements(lookup);
  const std::string unique_id = value_of(lookup, "RONDO_UNIQUE_ID");
  const std::string root = value_of(lookup, "RONDO_ROOT");
  if (statements.empty()) {
    throw Error(ErrorCode::configuration,
                fmt::format("no launcher started this process: none of RONDO_RANK, RANK, OMPI_COMM_WORLD_RANK and "
                            "SLURM_PROCID (in a step) is set{}",
                            unique_id.empty() && root.empty() ? "" : ", though RONDO_UNIQUE_ID or RONDO_ROOT is"),
                "for example: rondo run -n 4 -- program");
  }
  require_agreement(statements);
  if (!unique_id.empty() && !root.empty()) {
    throw Error(ErrorCode::configuration, "RONDO_UNIQUE_ID and RONDO_ROOT are both set; each says where rank 0 is",
                "unset one of them");
  }

  LaunchDescription d;
  d.source = statements.front().source;
  d.rank = statements.front().rank;
  d.size = statements.front().size;
  d.unique_id = unique_id;
  if (!unique_id.empty()) return d;
  if (!root.empty()) {
    read_root(root, d);
    // All ranks see the same text, whatever else their launcher tells them.
    d.job = fmt::format("RONDO_ROOT {}", root);
    d.single_host = is_loopback(d.root_host);
    return d;
  }
  // The first that can say where rank 0 is. `rondo run` alone cannot, without an id.
  if (d.source == "rondo run" && statements.size() > 1) d.source = statements[1].source;
  if (d.source == "torchrun") {
    describe_torchrun(lookup, d);
  } else if (d.source == "Open MPI") {
    describe_open_mpi(lookup, d);
  } else if (d.source == "Slurm") {
    describe_slurm(lookup, d);
  } else {
    throw Error(ErrorCode::configuration,
                "RONDO_RANK and RONDO_SIZE are set, but neither RONDO_UNIQUE_ID nor RONDO_ROOT says where rank 0 is",
                "for example: rondo run -n 4 -- program, or by hand RONDO_ROOT=10.0.0.1:29555");
  }
  return d;
}

}  // namespace rondo::bootstrap
