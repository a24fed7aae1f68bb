#include "api/libfabric/cntr.hpp"

#include <rdma/fi_errno.h>

#include "api/libfabric/domain.hpp"
#include "api/libfabric/guard.hpp"
#include "api/libfabric/transport.hpp"
#include "api/libfabric/unsupported.hpp"

namespace apenet::libfabric {

namespace {

Counter& counter_of(fid_cntr* counter) {
  return *static_cast<Counter*>(counter);
}
ipc::Client& client_of_counter(fid_cntr* counter) {
  return counter_of(counter).transport().client();
}

std::uint64_t read(fid_cntr* counter) {
  enter(client_of_counter(counter), [&] {
    counter_of(counter).make_progress();
    counter_of(counter).seen();
  });
  return counter_of(counter).value();
}

std::uint64_t read_errors(fid_cntr* counter) {
  return counter_of(counter).errors();
}

template <typename Act>
int change(fid_cntr* counter, Act act) {
  return enter(client_of_counter(counter), [&] { act(counter_of(counter)); });
}

int add(fid_cntr* counter, std::uint64_t value) {
  return change(counter, [value](Counter& target) { target.set_value(target.value() + value); });
}

int set(fid_cntr* counter, std::uint64_t value) {
  return change(counter, [value](Counter& target) { target.set_value(value); });
}

int add_errors(fid_cntr* counter, std::uint64_t value) {
  return change(counter, [value](Counter& target) { target.set_errors(target.errors() + value); });
}

int set_errors(fid_cntr* counter, std::uint64_t value) {
  return change(counter, [value](Counter& target) { target.set_errors(value); });
}

int wait(fid_cntr* counter, std::uint64_t threshold, int timeout_ms) {
  return enter(client_of_counter(counter), [&] { return counter_of(counter).wait(threshold, timeout_ms); });
}

constexpr fi_ops counter_object_ops = object_ops(close_object<Counter>, unsupported, get_wait<Counter>);
constexpr fi_ops_cntr counter_ops = {
    .size = sizeof(fi_ops_cntr),
    .read = read,
    .readerr = read_errors,
    .add = add,
    .set = set,
    .wait = wait,
    .adderr = add_errors,
    .seterr = set_errors,
};

}  // namespace

Counter::Counter(Domain& domain, const fi_cntr_attr& attributes, void* user_context)
    : fid_cntr{},
      domain_(domain),
      transport_(domain.transport()),
      descriptor_(attributes.wait_obj == FI_WAIT_FD),
      membership_(attributes.wait_obj, attributes.wait_set, fid) {
  descriptor_.raise();
  fid.fclass = FI_CLASS_CNTR;
  fid.context = user_context;
  fid.ops = table(counter_object_ops);
  ops = table(counter_ops);
}

// A program may loop on a counter: then progress is made here. A program that reads it although nothing is
// under way, as MPI_Win_fence does, is not waiting for this counter, and its empty polls up to now were not
// one long wait either.
void Counter::make_progress() {
  if (transport_.accesses_under_way() > 0) {
    transport_.progress();
  } else if (counts_arrivals_) {
    transport_.progress_truthfully();
  } else {
    transport_.client().progress().not_waiting();
  }
}

int Counter::wait(std::uint64_t threshold, int timeout_ms) {
  const std::uint64_t errors_before = errors();
  const bool done = transport_.progress_until(
      timeout_ms, [&] { return value() >= threshold || errors() != errors_before; });
  seen();
  if (value() >= threshold) return 0;
  return done ? -FI_EAVAIL : -FI_ETIMEDOUT;
}

void count_access(std::uint64_t kinds, Counter* writes, Counter* reads) {
  Counter* write = (kinds & FI_REMOTE_WRITE) != 0 ? writes : nullptr;
  Counter* read = (kinds & FI_REMOTE_READ) != 0 ? reads : nullptr;
  if (write != nullptr) write->count();
  if (read != nullptr && read != write) read->count();
}

int open_counter(fid_domain* domain, fi_cntr_attr* attributes, fid_cntr** counter, void* context) {
  Domain& owner = domain_of(domain);
  return enter(owner.transport().client(), [&] {
    const fi_cntr_attr wanted = attributes != nullptr ? *attributes : fi_cntr_attr{};
    check_wait_object("fi_cntr_open", wanted.wait_obj, wanted.wait_set);
    *counter = new Counter(owner, wanted, context);
  });
}

}  // namespace apenet::libfabric
