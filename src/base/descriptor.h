// descriptor.h: a file descriptor that is closed at the end of its scope.
#pragma once

#include <unistd.h>

#include <utility>

namespace marey {

class Descriptor {
  public:
    /// -1: none.
    explicit Descriptor(int number) noexcept : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&&) = delete;
    ~Descriptor() {
        if (number_ >= 0) ::close(number_);
    }
    int get() const noexcept { return number_; }

  private:
    int number_;
};

}  // namespace marey
