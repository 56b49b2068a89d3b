// fields.h: the field numbers of pprof's protobuf messages (profile.proto) that we write or read.
#pragma once

#include <cstdint>

namespace marey::pprof {

enum class ProfileField : std::uint32_t {
    SampleType = 1,
    Sample = 2,
    Mapping = 3,
    Location = 4,
    Function = 5,
    StringTable = 6,
    TimeNanos = 9,
    DurationNanos = 10,
    PeriodType = 11,
    Period = 12,
    Comment = 13,
    DefaultSampleType = 14,
};
enum class ValueTypeField : std::uint32_t { Type = 1, Unit = 2 };
enum class SampleField : std::uint32_t { LocationId = 1, Value = 2, Label = 3 };
enum class LabelField : std::uint32_t { Key = 1, Str = 2, Num = 3, NumUnit = 4 };
enum class LocationField : std::uint32_t { Id = 1, MappingId = 2, Address = 3, Line = 4 };
enum class LineField : std::uint32_t { FunctionId = 1, Line = 2 };
enum class FunctionField : std::uint32_t { Id = 1, Name = 2, SystemName = 3, FileName = 4, StartLine = 5 };

}  // namespace marey::pprof
