// export.h: marks what libmarey shows to the outside; everything else is hidden.
#pragma once

#if defined(__GNUC__)
#define MAREY_API __attribute__((visibility("default")))
#else
#define MAREY_API
#endif
