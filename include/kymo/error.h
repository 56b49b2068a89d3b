// error.h: the one family of exceptions that the cold side throws.
#pragma once

#include <stdexcept>

#include <kymo/detail/export.h>

namespace kymo {

/// What every failing call outside of recording throws. The text names the file or object and the cause.
class KYMO_API Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

}  // namespace kymo
