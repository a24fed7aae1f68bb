// fi_atomic, fi_fetch_atomic, fi_compare_atomic and their kin.
#include <rdma/fi_errno.h>

#include <array>
#include <vector>

#include "api/libfabric/atomics.hpp"
#include "api/libfabric/endpoint.hpp"
#include "api/libfabric/guard.hpp"
#include "api/libfabric/transport.hpp"

namespace apenet::libfabric {
namespace {

// Elements in scattered memory of the program.
struct Elements {
  const fi_ioc* pieces = nullptr;
  std::size_t count = 0;
};

AtomicOperation valid(AtomicForm form, fi_datatype type, fi_op op) {
  const AtomicOperation operation{form, type, op};
  if (!is_valid(operation))
    throw FabricError(FI_EOPNOTSUPP, "an atomic operation that its datatype does not have");
  return operation;
}

Buffer buffer_of(const Endpoint& endpoint, const Elements& elements, std::size_t bytes) {
  std::array<iovec, segment_limit> pieces;
  if (elements.count > segment_limit) throw FabricError(FI_EINVAL, "more pieces than iov_limit");
  for (std::size_t i = 0; i < elements.count; ++i)
    pieces[i] = {elements.pieces[i].addr, elements.pieces[i].count * bytes};
  return make_buffer(endpoint, pieces.data(), elements.count);
}

// A call with what it takes from the program's memory.
class Prepared {
 public:
  Prepared(fid_ep* ep, const AtomicOperation& operation, fi_addr_t peer, void* context, std::uint64_t flags)
      : endpoint_(endpoint_of(ep)), bytes_(bytes_of(operation.type)) {
    call_.operation = operation;
    call_.to = &endpoint_.resolve(peer);
    call_.reports = endpoint_.transmit_reports(flags);
    call_.context = context;
  }

  void add_target(std::uint64_t address, std::uint64_t count, std::uint64_t key) {
    if (targets_used_ == segment_limit) throw FabricError(FI_EINVAL, "more pieces than rma_iov_limit");
    if (count > most_atomic_bytes / bytes_ - elements_)
      throw FabricError(FI_EMSGSIZE, "more elements than fi_query_atomic allows");
    targets_[targets_used_++] = {address, count, key};
    elements_ += count;
  }
  void take_operands(const Elements& elements) {
    if (call_.operation.op != FI_ATOMIC_READ) call_.operands = gathered(operands_, elements);
  }
  void take_comparands(const Elements& elements) { call_.comparands = gathered(comparands_, elements); }
  void give_results(const Elements& elements) {
    call_.results = buffer_of(endpoint_, elements, bytes_);
    check_length(call_.results);
  }
  void add_data(std::uint64_t data) {
    call_.has_data = true;
    call_.data = static_cast<std::uint32_t>(data);
  }
  void do_not_report() { call_.reports = false; }

  void post() {
    call_.remote = {targets_.data(), targets_used_};
    endpoint_.transport().atomics().post(endpoint_, call_);
  }

 private:
  void check_length(const Buffer& buffer) const {
    if (buffer.length != elements_ * bytes_)
      throw FabricError(FI_EINVAL, "local and remote memory of an atomic operation differ in length");
  }
  std::span<const std::byte> gathered(std::vector<std::byte>& kept, const Elements& elements) {
    const Buffer buffer = buffer_of(endpoint_, elements, bytes_);
    check_length(buffer);
    endpoint_.transport().real_gpus().fetch(buffer);
    kept.resize(buffer.length);
    message::gather(kept.data(), buffer);
    return kept;
  }

  Endpoint& endpoint_;
  std::size_t bytes_;
  std::size_t elements_ = 0;
  std::size_t targets_used_ = 0;
  std::array<AtomicTarget, segment_limit> targets_;
  std::vector<std::byte> operands_;
  std::vector<std::byte> comparands_;
  AtomicCall call_;
};

fi_ioc one_piece(const void* start, std::size_t count) {
  return {const_cast<void*>(start), count};  // NOLINT(cppcoreguidelines-pro-type-const-cast): fi_ioc
}

std::size_t total_of(const Elements& elements) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < elements.count; ++i) count += elements.pieces[i].count;
  return count;
}

// A call with one target, whose flags are the endpoint's own. Where operands are not used, the results say
// how many elements there are.
Prepared plain_call(fid_ep* ep, const AtomicOperation& operation, const Elements& counted, fi_addr_t peer,
                    std::uint64_t address, std::uint64_t key, void* context) {
  Prepared call(ep, operation, peer, context, endpoint_of(ep).transmit_flags());
  call.add_target(address, total_of(counted), key);
  return call;
}

Prepared message_call(fid_ep* ep, AtomicForm form, const fi_msg_atomic& message, std::uint64_t flags) {
  Prepared call(ep, valid(form, message.datatype, message.op), message.addr, message.context, flags);
  for (std::size_t i = 0; i < message.rma_iov_count; ++i) {
    const fi_rma_ioc& target = message.rma_iov[i];
    call.add_target(target.addr, target.count, target.key);
  }
  call.take_operands({message.msg_iov, message.iov_count});
  if ((flags & FI_REMOTE_CQ_DATA) != 0) call.add_data(message.data);
  return call;
}

ssize_t write_pieces(fid_ep* ep, const fi_ioc* pieces, void** /*descriptors*/, std::size_t count,
                     fi_addr_t peer, std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op,
                     void* context) {
  return enter(client_of(ep), [&] {
    const Elements operands{pieces, count};
    Prepared call = plain_call(ep, valid(AtomicForm::write, type, op), operands, peer, address, key, context);
    call.take_operands(operands);
    call.post();
  });
}

ssize_t write(fid_ep* ep, const void* start, std::size_t count, void* /*descriptor*/, fi_addr_t peer,
              std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op, void* context) {
  const fi_ioc piece = one_piece(start, count);
  return write_pieces(ep, &piece, nullptr, 1, peer, address, key, type, op, context);
}

ssize_t write_message(fid_ep* ep, const fi_msg_atomic* message, std::uint64_t flags) {
  return enter(client_of(ep), [&] { message_call(ep, AtomicForm::write, *message, flags).post(); });
}

ssize_t inject(fid_ep* ep, const void* start, std::size_t count, fi_addr_t peer, std::uint64_t address,
               std::uint64_t key, fi_datatype type, fi_op op) {
  return enter(client_of(ep), [&] {
    const fi_ioc piece = one_piece(start, count);
    const Elements operands{&piece, 1};
    Prepared call = plain_call(ep, valid(AtomicForm::write, type, op), operands, peer, address, key, nullptr);
    call.take_operands(operands);
    call.do_not_report();
    call.post();
  });
}

ssize_t fetch_pieces(fid_ep* ep, const fi_ioc* pieces, void** /*descriptors*/, std::size_t count,
                     fi_ioc* results, void** /*result_descriptors*/, std::size_t result_count, fi_addr_t peer,
                     std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op, void* context) {
  return enter(client_of(ep), [&] {
    const Elements wanted{results, result_count};
    Prepared call = plain_call(ep, valid(AtomicForm::fetch, type, op), wanted, peer, address, key, context);
    call.take_operands({pieces, count});
    call.give_results(wanted);
    call.post();
  });
}

ssize_t fetch(fid_ep* ep, const void* start, std::size_t count, void* /*descriptor*/, void* result,
              void* /*result_descriptor*/, fi_addr_t peer, std::uint64_t address, std::uint64_t key,
              fi_datatype type, fi_op op, void* context) {
  const fi_ioc piece = one_piece(start, count);
  fi_ioc results = one_piece(result, count);
  return fetch_pieces(ep, &piece, nullptr, 1, &results, nullptr, 1, peer, address, key, type, op, context);
}

ssize_t fetch_message(fid_ep* ep, const fi_msg_atomic* message, fi_ioc* results,
                      void** /*result_descriptors*/, std::size_t result_count, std::uint64_t flags) {
  return enter(client_of(ep), [&] {
    Prepared call = message_call(ep, AtomicForm::fetch, *message, flags);
    call.give_results({results, result_count});
    call.post();
  });
}

ssize_t compare_pieces(fid_ep* ep, const fi_ioc* pieces, void** /*descriptors*/, std::size_t count,
                       const fi_ioc* comparands, void** /*compare_descriptors*/, std::size_t compare_count,
                       fi_ioc* results, void** /*result_descriptors*/, std::size_t result_count,
                       fi_addr_t peer, std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op,
                       void* context) {
  return enter(client_of(ep), [&] {
    const Elements wanted{results, result_count};
    Prepared call = plain_call(ep, valid(AtomicForm::compare, type, op), wanted, peer, address, key, context);
    call.take_operands({pieces, count});
    call.take_comparands({comparands, compare_count});
    call.give_results(wanted);
    call.post();
  });
}

ssize_t compare(fid_ep* ep, const void* start, std::size_t count, void* /*descriptor*/, const void* comparand,
                void* /*compare_descriptor*/, void* result, void* /*result_descriptor*/, fi_addr_t peer,
                std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op, void* context) {
  const fi_ioc piece = one_piece(start, count);
  const fi_ioc comparands = one_piece(comparand, count);
  fi_ioc results = one_piece(result, count);
  return compare_pieces(ep, &piece, nullptr, 1, &comparands, nullptr, 1, &results, nullptr, 1, peer, address,
                        key, type, op, context);
}

ssize_t compare_message(fid_ep* ep, const fi_msg_atomic* message, const fi_ioc* comparands,
                        void** /*compare_descriptors*/, std::size_t compare_count, fi_ioc* results,
                        void** /*result_descriptors*/, std::size_t result_count, std::uint64_t flags) {
  return enter(client_of(ep), [&] {
    Prepared call = message_call(ep, AtomicForm::compare, *message, flags);
    call.take_comparands({comparands, compare_count});
    call.give_results({results, result_count});
    call.post();
  });
}

int query(AtomicForm form, fi_datatype type, fi_op op, std::size_t* count) {
  if (!is_valid({form, type, op})) return -FI_EOPNOTSUPP;
  *count = most_atomic_bytes / bytes_of(type);
  return 0;
}

template <AtomicForm form>
int query_form(fid_ep* /*ep*/, fi_datatype type, fi_op op, std::size_t* count) {
  return query(form, type, op, count);
}

}  // namespace

int query_atomic(fid_domain* /*domain*/, fi_datatype type, fi_op op, fi_atomic_attr* attributes,
                 std::uint64_t flags) {
  if ((flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC)) != 0 ||
      flags == (FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC)) {
    return -FI_EBADFLAGS;
  }
  AtomicForm form = AtomicForm::write;
  if (flags == FI_FETCH_ATOMIC) form = AtomicForm::fetch;
  if (flags == FI_COMPARE_ATOMIC) form = AtomicForm::compare;
  const int result = query(form, type, op, &attributes->count);
  attributes->size = bytes_of(type);
  return result;
}

const fi_ops_atomic atomic_ops = {
    .size = sizeof(fi_ops_atomic),
    .write = write,
    .writev = write_pieces,
    .writemsg = write_message,
    .inject = inject,
    .readwrite = fetch,
    .readwritev = fetch_pieces,
    .readwritemsg = fetch_message,
    .compwrite = compare,
    .compwritev = compare_pieces,
    .compwritemsg = compare_message,
    .writevalid = query_form<AtomicForm::write>,
    .readwritevalid = query_form<AtomicForm::fetch>,
    .compwritevalid = query_form<AtomicForm::compare>,
};

}  // namespace apenet::libfabric
