// export.h: marks the symbols that libmarey exports; all others are hidden.
#pragma once

#if defined(__GNUC__)
#define MAREY_API __attribute__((visibility("default")))
#else
#define MAREY_API
#endif
