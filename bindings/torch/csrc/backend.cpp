#include "backend.hpp"

#include "farewell.hpp"

#include <rondo/version.hpp>

#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

namespace rondo_torch {
namespace {

using c10::intrusive_ptr;
using c10d::OpType;
using c10d::Work;
using std::chrono::milliseconds;
using Tensors = std::vector<at::Tensor>;

constexpr milliseconds patience_at_shutdown{5000};
constexpr const char* id_key = "rondo/unique_id";

[[noreturn]] void rethrow(const rondo::Error& error) { std::rethrow_exception(to_torch(error)); }

// The key travels in the store: rank 0 makes it, or says why it could not.
rondo::UniqueId agree_on_id(c10d::Store& store, int rank, milliseconds timeout) {
  const std::string version = rondo::version();
  if (rank == 0) {
    const auto set = [&](const std::string& text) {
      store.set(id_key, std::vector<std::uint8_t>(text.begin(), text.end()));
    };
    try {
      const rondo::UniqueId id = rondo::UniqueId::create();
      set(version + " " + id.to_string());
      return id;
    } catch (const rondo::Error& error) {
      set(std::string("error ") + error.what());
      throw;
    }
  }
  try {
    store.wait({id_key}, timeout);
  } catch (const std::exception& error) {
    C10_THROW_ERROR(DistBackendError, c10::str("rondo: rank ", rank, " waited ", timeout.count(),
                                               " ms in the store for rank 0 to make the group; has rank 0 started? (",
                                               error.what(), ")"));
  }
  const std::vector<std::uint8_t> bytes = store.get(id_key);
  const std::string text(bytes.begin(), bytes.end());
  const std::size_t space = text.find(' ');
  const std::string first = text.substr(0, space);
  const std::string rest = space == std::string::npos ? "" : text.substr(space + 1);
  TORCH_CHECK(first != "error", "rondo: rank 0 could not make the group: ", rest);
  TORCH_CHECK(first == version, "rondo: rank 0 has rondo ", first, ", rank ", rank, " has ", version,
              "; install the same rondo_torch on all hosts");
  return rondo::UniqueId::from_string(rest);
}

void forget_id(c10d::Store& store) noexcept {
  try {
    store.deleteKey(id_key);
  } catch (const std::exception&) {  // a store that cannot forget, or is gone
  }
}

}  // namespace

BackendRondo::BackendRondo(intrusive_ptr<c10d::Store> store, int rank, int size, intrusive_ptr<Options> options,
                           std::string title)
    : Backend(rank, size), title_(std::move(title)), options_(std::move(options)), process_(getpid()) {
  try {
    rondo::Config config;
    config.name = options_->group_name.empty() ? "torch" : "group " + options_->group_name;
    config.deadline = deadline_of(options_->timeout);
    config.join_deadline = deadline_of(options_->timeout);
    const rondo::UniqueId id = agree_on_id(*store, rank, options_->timeout);
    // Once all have joined, or rank 0 has given up, nobody may take this group's id for that of a later one.
    const auto forget = [&] {
      if (rank == 0) forget_id(*store);
    };
    try {
      communicator_ = std::make_shared<rondo::Communicator>(rondo::Communicator::create(id, rank, size, config));
    } catch (const rondo::Error&) {
      forget();
      throw;
    }
    forget();
  } catch (const rondo::Error& error) {
    rethrow(error);
  }
  init();
}

BackendRondo::~BackendRondo() { leave(milliseconds(0)); }

void BackendRondo::leave(milliseconds patience) noexcept {
  const std::lock_guard lock(mutex_);
  if (communicator_ == nullptr) return;
  if (getpid() != process_) {  // a forked child: the threads are the parent's, and so is the goodbye
    static_cast<void>(new std::shared_ptr<rondo::Communicator>(std::move(communicator_)));
    static_cast<void>(completions_.release());
    return;
  }
  say_farewell(std::move(communicator_), std::move(completions_), patience);
}

std::shared_ptr<rondo::Communicator> BackendRondo::communicator() {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK(communicator_ != nullptr, "rondo: the process group has been shut down");
  return communicator_;
}

void BackendRondo::setTimeout(milliseconds timeout) { options_->timeout = timeout; }

const char* BackendRondo::title(const char* operation) const {
  static std::mutex mutex;
  static auto& titles = *new std::set<std::string>;  // the profiler may look at them until the process ends
  const std::lock_guard lock(mutex);
  return titles.insert(title_ + ":" + operation).first->c_str();
}

void BackendRondo::watch(const intrusive_ptr<WorkRondo>& work) {
  const std::lock_guard lock(mutex_);
  if (completions_ == nullptr) completions_ = std::make_unique<Completions>();
  completions_->watch(work);
}

void BackendRondo::issue(const intrusive_ptr<WorkRondo>& work, const std::vector<Call>& calls, milliseconds timeout) {
  std::vector<rondo::Work> works;
  std::exception_ptr failure;
  const auto start = [&](const Call& call) {
    const rondo::Stream own;  // collectives are in order by themselves, and nothing else waits for another
    works.push_back(call({.stream = &own, .deadline = deadline_of(timeout)}));
  };
  try {
    if (calls.size() == 1) {
      start(calls[0]);
    } else if (!calls.empty()) {
      rondo::Group together;
      for (const Call& call : calls) start(call);
      together.submit();
    }
  } catch (const rondo::Error& error) {
    failure = to_torch(error);
  }
  // Even after a refusal: what was started before it uses the tensors.
  const bool any = !works.empty();
  work->set_works(std::move(works));
  if (any) watch(work);
  else if (!failure) work->settle();
  if (failure) std::rethrow_exception(failure);
}

intrusive_ptr<Work> BackendRondo::run(const Launch& launch, std::vector<Call> calls, Staging& staging, Tensors inputs,
                                      Tensors outputs) {
  const milliseconds timeout = launch.timeout > kNoTimeout ? launch.timeout : options_->timeout;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    if (launch.is_collective) ++sequence_;
    number = sequence_;
  }
  auto work = c10::make_intrusive<WorkRondo>(
      rank_, WorkRondo::Parts{launch.type, title(launch.title), number, timeout, std::move(inputs), std::move(outputs),
                              staging.alive(), staging.take_finish()});
  {
    const std::lock_guard lock(mutex_);
    if (coalescing_) {
      using Weak = c10::weak_intrusive_ptr<BackendRondo>;
      work->begin_with([weak = Weak(intrusive_ptr<BackendRondo>::reclaim_copy(this))] {
        if (const auto backend = weak.lock())
          if (const auto failure = backend->begin_coalesced(true)) std::rethrow_exception(failure);
      });
      coalesced_.push_back({work, std::move(calls), timeout});
      return work;
    }
  }
  if (launch.async || calls.size() != 1) {
    issue(work, calls, timeout);
    return work;
  }
  try {
    calls[0]({.deadline = deadline_of(timeout)});
  } catch (const rondo::Error& error) {
    rethrow(error);
  }
  work->set_works({});
  work->settle();
  if (const auto failure = work->exception()) std::rethrow_exception(failure);
  return work;
}
void BackendRondo::startCoalescing() {
  const std::lock_guard lock(mutex_);
  coalesced_.clear();  // of a block that an exception left
  begun_.clear();
  coalescing_ = true;
}

std::exception_ptr BackendRondo::begin_coalesced(bool watched) {
  std::vector<Coalesced> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(coalesced_);
    for (const Coalesced& one : all) begun_.push_back(one.work);
  }
  std::vector<std::vector<rondo::Work>> works(all.size());
  std::exception_ptr failure;
  try {
    rondo::Group group;
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (const Call& call : all[i].calls) {
        const rondo::Stream own;
        works[i].push_back(call({.stream = &own, .deadline = deadline_of(all[i].timeout)}));
      }
    }
    group.submit();
  } catch (const rondo::Error& error) {
    failure = to_torch(error);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].work->set_works(std::move(works[i]));
    if (watched) watch(all[i].work);
  }
  return failure;
}

intrusive_ptr<Work> BackendRondo::endCoalescing() {
  {
    const std::lock_guard lock(mutex_);
    TORCH_CHECK(coalescing_, "rondo: endCoalescing() without startCoalescing()");
    coalescing_ = false;
  }
  const std::exception_ptr failure = begin_coalesced(false);
  std::vector<rondo::Work> started;
  std::vector<intrusive_ptr<WorkRondo>> members;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    members.swap(begun_);
    number = sequence_;
  }
  for (const auto& member : members) started.insert(started.end(), member->works().begin(), member->works().end());
  auto together = c10::make_intrusive<WorkRondo>(
      rank_, WorkRondo::Parts{
                 OpType::COALESCED, title("coalesced"), number, options_->timeout, {}, {}, {}, {}, std::move(members)});
  const bool any = !started.empty();
  together->set_works(std::move(started));
  if (any) watch(together);  // even after a refusal: what was started before it uses the tensors
  else if (!failure) together->settle();
  if (failure) std::rethrow_exception(failure);
  return together;
}

std::shared_ptr<Arena> BackendRondo::reserve(std::size_t bytes) {
  const auto together = communicator();
  std::shared_ptr<Arena> made;
  try {
    made = std::make_shared<Arena>(together->allocate_bytes(bytes));
  } catch (const rondo::Error& error) {
    rethrow(error);
  }
  const std::lock_guard lock(mutex_);
  arena_ = made;
  return made;
}

std::shared_ptr<Arena> BackendRondo::arena() {
  const std::lock_guard lock(mutex_);
  return arena_;
}

at::Tensor BackendRondo::allocateTensor(long count, at::TensorOptions options) {
  TORCH_CHECK_VALUE(count >= 0, "rondo: allocate_tensor: ", count, " elements; 0 and more can be allocated");
  TORCH_CHECK_VALUE(options.device().is_cpu(), "rondo: allocate_tensor: the device is ", options.device(),
                    "; this backend serves CPU tensors");
  const auto allocator = getMemAllocator();
  const std::size_t bytes = static_cast<std::size_t>(count) * options.dtype().itemsize();
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                       allocator->allocate(bytes), nullptr, false);
  return at::empty({0}, options.pinned_memory(false)).set_(c10::Storage(std::move(storage)), 0, {count});
}

std::shared_ptr<c10::Allocator> BackendRondo::getMemAllocator() {
  auto from = arena();
  TORCH_CHECK(from != nullptr, "rondo: the group has no window memory; reserve some: rondo_torch.use_window_memory()");
  return allocator_of(std::move(from));
}

std::uint64_t BackendRondo::getSequenceNumberForGroup() {
  const std::lock_guard lock(mutex_);
  return sequence_;
}

intrusive_ptr<c10d::Backend> BackendRondo::split(const intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                                                 const intrusive_ptr<c10d::Backend::Options>& options) {
  const auto place = std::find(ranks.begin(), ranks.end(), rank_);
  if (place == ranks.end()) return nullptr;
  auto own = c10::make_intrusive<Options>(options ? options->timeout : options_->timeout);
  if (options) {
    own->group_name = options->group_name;
    own->group_desc = options->group_desc;
    own->global_ranks_in_group = options->global_ranks_in_group;
  }
  return c10::make_intrusive<BackendRondo>(store->clone(), static_cast<int>(place - ranks.begin()),
                                           static_cast<int>(ranks.size()), std::move(own), title_);
}

void BackendRondo::abort() {
  std::shared_ptr<rondo::Communicator> communicator;
  {
    const std::lock_guard lock(mutex_);
    communicator = communicator_;
  }
  if (communicator != nullptr) communicator->abort("the process group was aborted");
}

void BackendRondo::shutdown() { leave(patience_at_shutdown); }

c10d::ErrorType BackendRondo::getError() {
  const std::lock_guard lock(mutex_);
  if (communicator_ == nullptr) return c10d::ErrorType::SUCCESS;
  try {
    communicator_->check();
    return c10d::ErrorType::SUCCESS;
  } catch (const rondo::Error& error) {
    if (error.code() == rondo::ErrorCode::deadline) return c10d::ErrorType::TIMEOUT;
    if (error.code() == rondo::ErrorCode::rank_failed) return c10d::ErrorType::REMOTE_ERROR;
    return c10d::ErrorType::COMM_ERROR;
  }
}

}  // namespace rondo_torch
