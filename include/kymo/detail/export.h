// export.h: marks what libkymo shows to the outside; everything else is hidden.
#pragma once

#if defined(__GNUC__)
#define KYMO_API __attribute__((visibility("default")))
#else
#define KYMO_API
#endif
