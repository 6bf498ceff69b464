#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace onced::store {

// Objects that serve one thread at a time: as many as ever worked at the same time, each used again for its buffers.
// Any thread.
template <class Object> class Pool {
public:
  // The object, as long as this lives.
  class Lease {
  public:
    Lease(Pool &pool, std::unique_ptr<Object> object) : pool_(&pool), object_(std::move(object)) {}
    Lease(Lease &&) noexcept = default;
    Lease &operator=(Lease &&) = delete;
    ~Lease() {
      if (object_) pool_->give_back(std::move(object_));
    }

    Object *operator->() const { return object_.get(); }
    Object &operator*() const { return *object_; }

  private:
    Pool *pool_;
    std::unique_ptr<Object> object_;
  };

  // An idle one; where there is none, one made of `arguments`.
  template <class... Arguments> [[nodiscard]] Lease take(Arguments &...arguments) {
    {
      const std::scoped_lock lock(mutex_);
      if (!idle_.empty()) {
        Lease lease(*this, std::move(idle_.back()));
        idle_.pop_back();
        return lease;
      }
    }
    return Lease(*this, std::make_unique<Object>(arguments...));
  }

private:
  void give_back(std::unique_ptr<Object> object) {
    const std::scoped_lock lock(mutex_);
    idle_.push_back(std::move(object));
  }

  std::mutex mutex_; // guards the next
  std::vector<std::unique_ptr<Object>> idle_;
};

} // namespace onced::store
