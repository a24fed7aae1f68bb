// The C edge of GASNet's extended interface.
#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "api/gasnet/interface.hpp"
#include "api/gasnet/operations.hpp"

// The value comes into its lowest bytes.
struct gasneti_valget {
  apenet::gasnet::Pending pending;
  gasnet_register_value_t value = 0;
};

namespace {

using apenet::gasnet::BarrierKind;
using apenet::gasnet::BarrierName;
using apenet::gasnet::Library;
using apenet::gasnet::Pending;
using apenet::gasnet::Remote;
using apenet::native::Inside;
namespace operations = apenet::gasnet;

std::span<const std::byte> source_span(const void* source, std::size_t bytes) {
  return {static_cast<const std::byte*>(source), bytes};
}

std::span<std::byte> destination_span(void* destination, std::size_t bytes) {
  return {static_cast<std::byte*>(destination), bytes};
}

// A handle for what begin(pending) begins, or none if it is finished at once.
template <typename Begin>
gasnet_handle_t explicit_operation(const Begin& begin) {
  auto operation = std::make_unique<gasneti_operation>();
  begin(operation->pending);
  const Inside inside(Library::instance().conduit().card().client());
  return operation->pending.is_empty() ? nullptr : operation.release();
}

// Begins and waits.
template <typename Begin>
void blocking_operation(const char* call, const Begin& begin) {
  Pending pending;
  begin(pending);
  operations::wait_for(call, pending);
}

gasnet_handle_t put_nb(const char* call, const Remote& to, const void* source, std::size_t bytes,
                       bool keeps) {
  return explicit_operation(
      [&](Pending& pending) { operations::put(call, to, source_span(source, bytes), keeps, pending); });
}

gasnet_handle_t get_nb(const char* call, void* destination, const Remote& from, std::size_t bytes) {
  return explicit_operation(
      [&](Pending& pending) { operations::get(call, destination_span(destination, bytes), from, pending); });
}

void put_blocking(const char* call, const Remote& to, const void* source, std::size_t bytes) {
  blocking_operation(
      call, [&](Pending& pending) { operations::put(call, to, source_span(source, bytes), false, pending); });
}

void get_blocking(const char* call, void* destination, const Remote& from, std::size_t bytes) {
  blocking_operation(call, [&](Pending& pending) {
    operations::get(call, destination_span(destination, bytes), from, pending);
  });
}

void finish(gasnet_handle_t& handle) {
  const std::unique_ptr<gasneti_operation> ended(handle);
  handle = nullptr;
}

bool is_done(const gasneti_operation* operation) {
  return operation->pending.is_empty();
}

// Polls, and ends those of the handles that are finished. How many were, and how many are left.
struct Synced {
  std::size_t ended = 0;
  std::size_t left = 0;
};
Synced sync_finished(const char* call, std::span<gasnet_handle_t> handles) {
  Library& library = Library::instance();
  library.require_no_handler(call);
  library.poll();
  const Inside inside(library.conduit().card().client());
  Synced result;
  for (gasnet_handle_t& handle : handles) {
    if (handle == nullptr) continue;
    if (is_done(handle)) {
      finish(handle);
      ++result.ended;
    } else {
      ++result.left;
    }
  }
  return result;
}

bool is_any_done(std::span<const gasnet_handle_t> handles) {
  return std::ranges::any_of(handles,
                             [](const gasneti_operation* one) { return one != nullptr && is_done(one); });
}

bool are_all_done(std::span<const gasnet_handle_t> handles) {
  return std::ranges::all_of(handles,
                             [](const gasneti_operation* one) { return one == nullptr || is_done(one); });
}

void require_value_size(const char* call, std::size_t bytes) {
  if (bytes == 0 || bytes > sizeof(gasnet_register_value_t))
    Library::instance().fatal(call, "a value has 1 to 8 bytes");
}

int end_barrier(int id, int flags) {
  Library& library = Library::instance();
  apenet::gasnet::Barrier& barrier = library.barrier();
  const Inside inside(library.conduit().card().client());
  const BarrierName own = BarrierName::of(id, flags);
  // The flags may differ from those of the notify: an id that either names must be the one of all.
  const BarrierName all = barrier.finish();
  const bool is_mismatch = all.with(own).kind == BarrierKind::mismatch;
  return is_mismatch ? GASNET_ERR_BARRIER_MISMATCH : GASNET_OK;
}

// Fatal unless a barrier has been notified.
void require_notified(const char* call) {
  Library& library = Library::instance();
  library.require_no_handler(call);
  const Inside inside(library.conduit().card().client());
  if (!library.barrier().is_notified()) library.fatal(call, "called without gasnet_barrier_notify");
}

}  // namespace

extern "C" {

void gasnet_put(gasnet_node_t node, void* destination, void* source, size_t bytes) {
  put_blocking("gasnet_put", {node, destination}, source, bytes);
}

void gasnet_get(void* destination, gasnet_node_t node, void* source, size_t bytes) {
  get_blocking("gasnet_get", destination, {node, source}, bytes);
}

void gasnet_put_bulk(gasnet_node_t node, void* destination, void* source, size_t bytes) {
  put_blocking("gasnet_put_bulk", {node, destination}, source, bytes);
}

void gasnet_get_bulk(void* destination, gasnet_node_t node, void* source, size_t bytes) {
  get_blocking("gasnet_get_bulk", destination, {node, source}, bytes);
}

void gasnet_memset(gasnet_node_t node, void* destination, int value, size_t bytes) {
  blocking_operation("gasnet_memset", [&](Pending& pending) {
    operations::set_memory("gasnet_memset", {node, destination}, value, bytes, pending);
  });
}

gasnet_handle_t gasnet_put_nb(gasnet_node_t node, void* destination, void* source, size_t bytes) {
  return put_nb("gasnet_put_nb", {node, destination}, source, bytes, true);
}

gasnet_handle_t gasnet_get_nb(void* destination, gasnet_node_t node, void* source, size_t bytes) {
  return get_nb("gasnet_get_nb", destination, {node, source}, bytes);
}

gasnet_handle_t gasnet_put_nb_bulk(gasnet_node_t node, void* destination, void* source, size_t bytes) {
  return put_nb("gasnet_put_nb_bulk", {node, destination}, source, bytes, false);
}

gasnet_handle_t gasnet_get_nb_bulk(void* destination, gasnet_node_t node, void* source, size_t bytes) {
  return get_nb("gasnet_get_nb_bulk", destination, {node, source}, bytes);
}

gasnet_handle_t gasnet_memset_nb(gasnet_node_t node, void* destination, int value, size_t bytes) {
  return explicit_operation([&](Pending& pending) {
    operations::set_memory("gasnet_memset_nb", {node, destination}, value, bytes, pending);
  });
}

void gasnet_wait_syncnb(gasnet_handle_t handle) {
  gasnet_wait_syncnb_all(&handle, 1);
}

int gasnet_try_syncnb(gasnet_handle_t handle) {
  return gasnet_try_syncnb_all(&handle, 1);
}

void gasnet_wait_syncnb_all(gasnet_handle_t* handles, size_t count) {
  Library& library = Library::instance();
  library.require_no_handler("gasnet_wait_syncnb");
  library.wait("gasnet_wait_syncnb", [&] { return are_all_done({handles, count}); });
  for (gasnet_handle_t& handle : std::span(handles, count)) finish(handle);
}

int gasnet_try_syncnb_all(gasnet_handle_t* handles, size_t count) {
  return sync_finished("gasnet_try_syncnb", {handles, count}).left == 0 ? GASNET_OK : GASNET_ERR_NOT_READY;
}

void gasnet_wait_syncnb_some(gasnet_handle_t* handles, size_t count) {
  Library& library = Library::instance();
  library.require_no_handler("gasnet_wait_syncnb_some");
  const std::span all(handles, count);
  if (std::ranges::all_of(all, [](const gasneti_operation* one) { return one == nullptr; })) return;
  library.wait("gasnet_wait_syncnb_some", [&] { return is_any_done(all); });
  const Inside inside(library.conduit().card().client());
  for (gasnet_handle_t& handle : all) {
    if (handle != nullptr && is_done(handle)) finish(handle);
  }
}

int gasnet_try_syncnb_some(gasnet_handle_t* handles, size_t count) {
  const Synced result = sync_finished("gasnet_try_syncnb_some", {handles, count});
  return result.ended > 0 || result.left == 0 ? GASNET_OK : GASNET_ERR_NOT_READY;
}

void gasnet_put_nbi(gasnet_node_t node, void* destination, void* source, size_t bytes) {
  operations::put("gasnet_put_nbi", {node, destination}, source_span(source, bytes), true,
                  operations::implicit_puts());
}

void gasnet_get_nbi(void* destination, gasnet_node_t node, void* source, size_t bytes) {
  operations::get("gasnet_get_nbi", destination_span(destination, bytes), {node, source},
                  operations::implicit_gets());
}

void gasnet_put_nbi_bulk(gasnet_node_t node, void* destination, void* source, size_t bytes) {
  operations::put("gasnet_put_nbi_bulk", {node, destination}, source_span(source, bytes), false,
                  operations::implicit_puts());
}

void gasnet_get_nbi_bulk(void* destination, gasnet_node_t node, void* source, size_t bytes) {
  operations::get("gasnet_get_nbi_bulk", destination_span(destination, bytes), {node, source},
                  operations::implicit_gets());
}

void gasnet_memset_nbi(gasnet_node_t node, void* destination, int value, size_t bytes) {
  operations::set_memory("gasnet_memset_nbi", {node, destination}, value, bytes, operations::implicit_puts());
}

void gasnet_wait_syncnbi_gets(void) {
  operations::wait_for("gasnet_wait_syncnbi_gets", operations::implicit().gets);
}

void gasnet_wait_syncnbi_puts(void) {
  operations::wait_for("gasnet_wait_syncnbi_puts", operations::implicit().puts);
}

void gasnet_wait_syncnbi_all(void) {
  gasnet_wait_syncnbi_puts();
  gasnet_wait_syncnbi_gets();
}

int gasnet_try_syncnbi_gets(void) {
  const bool done = operations::is_finished("gasnet_try_syncnbi_gets", operations::implicit().gets);
  return done ? GASNET_OK : GASNET_ERR_NOT_READY;
}

int gasnet_try_syncnbi_puts(void) {
  const bool done = operations::is_finished("gasnet_try_syncnbi_puts", operations::implicit().puts);
  return done ? GASNET_OK : GASNET_ERR_NOT_READY;
}

int gasnet_try_syncnbi_all(void) {
  const int puts = gasnet_try_syncnbi_puts();
  const int gets = gasnet_try_syncnbi_gets();
  return puts == GASNET_OK ? gets : puts;
}

void gasnet_begin_nbi_accessregion(void) {
  Library::instance().require_no_handler("gasnet_begin_nbi_accessregion");
  operations::Implicit& state = operations::implicit();
  if (state.region != nullptr)
    Library::instance().fatal("gasnet_begin_nbi_accessregion", "access regions do not nest");
  state.region = std::make_unique<gasneti_operation>().release();
}

gasnet_handle_t gasnet_end_nbi_accessregion(void) {
  operations::Implicit& state = operations::implicit();
  if (state.region == nullptr)
    Library::instance().fatal("gasnet_end_nbi_accessregion", "called outside an access region");
  return std::exchange(state.region, nullptr);
}

void gasnet_put_val(gasnet_node_t node, void* destination, gasnet_register_value_t value, size_t bytes) {
  require_value_size("gasnet_put_val", bytes);
  put_blocking("gasnet_put_val", {node, destination}, &value, bytes);
}

gasnet_handle_t gasnet_put_nb_val(gasnet_node_t node, void* destination, gasnet_register_value_t value,
                                  size_t bytes) {
  require_value_size("gasnet_put_nb_val", bytes);
  return put_nb("gasnet_put_nb_val", {node, destination}, &value, bytes, true);
}

void gasnet_put_nbi_val(gasnet_node_t node, void* destination, gasnet_register_value_t value, size_t bytes) {
  require_value_size("gasnet_put_nbi_val", bytes);
  operations::put("gasnet_put_nbi_val", {node, destination}, source_span(&value, bytes), true,
                  operations::implicit_puts());
}

gasnet_register_value_t gasnet_get_val(gasnet_node_t node, void* source, size_t bytes) {
  return gasnet_wait_syncnb_valget(gasnet_get_nb_val(node, source, bytes));
}

gasnet_valget_handle_t gasnet_get_nb_val(gasnet_node_t node, void* source, size_t bytes) {
  require_value_size("gasnet_get_nb_val", bytes);
  auto handle = std::make_unique<gasneti_valget>();
  operations::get("gasnet_get_nb_val", destination_span(&handle->value, bytes), {node, source},
                  handle->pending);
  return handle.release();
}

gasnet_register_value_t gasnet_wait_syncnb_valget(gasnet_valget_handle_t handle) {
  const std::unique_ptr<gasneti_valget> ended(handle);
  operations::wait_for("gasnet_wait_syncnb_valget", handle->pending);
  return handle->value;
}

void gasnet_barrier_notify(int id, int flags) {
  Library& library = Library::instance();
  library.require_no_handler("gasnet_barrier_notify");
  const Inside inside(library.conduit().card().client());
  if (library.barrier().is_notified()) library.fatal("gasnet_barrier_notify", "called twice without a wait");
  library.barrier().notify(BarrierName::of(id, flags));
}

int gasnet_barrier_wait(int id, int flags) {
  Library& library = Library::instance();
  require_notified("gasnet_barrier_wait");
  library.wait("gasnet_barrier_wait", [&library] { return library.barrier().is_complete(); });
  return end_barrier(id, flags);
}

int gasnet_barrier_try(int id, int flags) {
  Library& library = Library::instance();
  require_notified("gasnet_barrier_try");
  library.poll();
  bool is_complete = false;
  {
    const Inside inside(library.conduit().card().client());
    is_complete = library.barrier().is_complete();
  }
  return is_complete ? end_barrier(id, flags) : GASNET_ERR_NOT_READY;
}

int gasnet_barrier(int id, int flags) {
  gasnet_barrier_notify(id, flags);
  return gasnet_barrier_wait(id, flags);
}

int gasnet_barrier_result(int* id) {
  Library& library = Library::instance();
  library.require_attached("gasnet_barrier_result");
  const Inside inside(library.conduit().card().client());
  const BarrierName last = library.barrier().last();
  if (id != nullptr) *id = last.id;
  if (last.kind == BarrierKind::mismatch) return GASNET_ERR_RESOURCE;
  return last.kind == BarrierKind::anonymous ? 1 : GASNET_OK;
}

}  // extern "C"
