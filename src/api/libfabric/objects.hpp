// What the provider's objects have in common: how they are found, used, closed and waited for.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "api/libfabric/guard.hpp"
#include "api/libfabric/wait_descriptor.hpp"

namespace apenet::libfabric {

// The provider's object behind libfabric's pointer. Object::Handle is the structure of libfabric that Object
// extends; each of them begins with a fid.
template <typename Object>
[[nodiscard]] Object& object_of(fid* object) {
  return *static_cast<Object*>(reinterpret_cast<typename Object::Handle*>(object));
}

// An object that cannot be closed while others use it.
class Usable {
 public:
  void bound(int change) { users_ += change; }
  [[nodiscard]] bool in_use() const { return users_ > 0; }

 private:
  int users_ = 0;
};

// Uses an object as long as it lives.
template <typename Object>
class Use {
 public:
  explicit Use(Object& object) : object_(object) { object_.bound(1); }
  ~Use() { object_.bound(-1); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  [[nodiscard]] Object& get() const { return object_; }

 private:
  Object& object_;
};

// fi_close.
template <typename Object>
int close_object(fid* object) {
  Object& closed = object_of<Object>(object);
  return enter(closed.transport().client(), [&]() -> int {
    if constexpr (requires { closed.in_use(); }) {
      if (closed.in_use()) return -FI_EBUSY;
    }
    delete &closed;
    return 0;
  });
}

// fi_control of an object whose one command is FI_GETWAIT.
template <typename Object>
int get_wait(fid* object, int command, void* argument) {
  const WaitDescriptor& descriptor = object_of<Object>(object).descriptor();
  if (command != FI_GETWAIT || descriptor.number() == WaitDescriptor::none) return -FI_ENOSYS;
  *static_cast<int*>(argument) = descriptor.number();
  return 0;
}

}  // namespace apenet::libfabric
