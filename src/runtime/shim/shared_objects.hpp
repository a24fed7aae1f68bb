// Locks, conditions, semaphores and barriers in memory that processes share.
//
// If only processes of the order have mapped the memory, such an object is one of the order. Its address
// differs between processes, so its name there is made of the memory's file and the offset in it.
#pragma once

#include <pthread.h>
#include <semaphore.h>

#include <cerrno>

#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/outside_waits.hpp"

namespace apenet::shim {

// The name of an object in memory that others may share; nullptr: a process that is in no order has mapped
// it, too, or the process has nothing in common with others. Call within an action: nobody starts a process
// then. Keeps errno.
[[nodiscard]] const void* name_of_shared(const void* object);

// What the order calls an object: its address, if only this process uses it.
template <typename Object>
[[nodiscard]] const void* name_in_order(const Object* object) {
  const void* const address = const_cast<const void*>(static_cast<const volatile void*>(object));
  return is_shared(object) ? name_of_shared(address) : address;
}

// Whether processes that the order does not know may yet come to use such an object, because its memory has a
// name.
[[nodiscard]] bool others_may_come(const void* object);

// The use of an object by a thread: one action, if the thread and the object are of the order. Whether an
// object in memory that others may share is of the order may change with the next action.
class ObjectUse {
 public:
  template <typename Object>
  ObjectUse(ipc::OrderedThread* own, const Object* object) : ObjectUse(own, object, is_shared(object)) {}
  // is_shared: others may share it.
  ObjectUse(ipc::OrderedThread* own, const volatile void* object, bool is_shared);
  ~ObjectUse() { end(); }
  ObjectUse(const ObjectUse&) = delete;
  ObjectUse& operator=(const ObjectUse&) = delete;

  // Whether the thread is in that action.
  [[nodiscard]] bool is_of_order() const { return own_ != nullptr; }
  // nullptr: the order does not know the object.
  [[nodiscard]] const void* name() const { return name_; }

 private:
  void end();

  const void* name_;
  ipc::OrderedThread* own_;
};

}  // namespace apenet::shim
