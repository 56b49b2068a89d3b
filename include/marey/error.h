// error.h: the exception type of Marey.
#pragma once

#include <stdexcept>

#include <marey/detail/export.h>

namespace marey {

/// Thrown by functions that fail. Recording itself never throws. The text names the file or object and the
/// cause.
class MAREY_API Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

}  // namespace marey
