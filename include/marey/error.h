// error.h: the one family of exceptions that the cold side throws.
#pragma once

#include <stdexcept>

#include <marey/detail/export.h>

namespace marey {

/// What every failing call outside of recording throws. The text names the file or object and the cause.
class MAREY_API Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

}  // namespace marey
