// read.cpp: reads pprof's profile.proto, which Go, Rust, Java and many continuous profilers write.
#include <algorithm>

#include <marey/error.h>

#include "formats/formats.h"
#include "formats/sampled_profile.h"

#if MAREY_HAVE_PROTOZERO

#include <optional>
#include <unordered_map>

#include "formats/pprof/fields.h"
#include "formats/protobuf_wire.h"

namespace marey {
namespace {

using perfetto::bytes;
using perfetto::each_varint;
using perfetto::into;
using perfetto::Message;
using perfetto::on;
using perfetto::read_fields;
using perfetto::varint;
using pprof::FunctionField;
using pprof::LabelField;
using pprof::LineField;
using pprof::LocationField;
using pprof::ProfileField;
using pprof::SampleField;
using pprof::ValueTypeField;

class PprofReader {
  public:
    PprofReader(std::string_view text, const std::string& name) : name_(name), profile_(name, text.size()) {
        // A damaged part does not affect those after it.
        const auto part = [&](auto read) {
            return [&, read](Message& m) {
                const std::string_view bytes_of_part = m.get_view();
                guarded([&] { read(bytes_of_part); });
            };
        };
        guarded([&] {
            read_fields(text, on(bytes(ProfileField::SampleType), part([&](std::string_view type) {
                                     types_.push_back(read_type(type));
                                 })),
                        into(bytes(ProfileField::Sample), samples_),
                        into(bytes(ProfileField::Location), locations_),
                        on(bytes(ProfileField::Function),
                           part([&](std::string_view function) { read_function(function); })),
                        into(bytes(ProfileField::StringTable), texts_),
                        on(bytes(ProfileField::PeriodType),
                           part([&](std::string_view type) { period_type_ = read_type(type); })),
                        into(varint(ProfileField::Period), period_),
                        into(varint(ProfileField::DefaultSampleType), default_type_));
        });
    }

    Trace read() {
        if (types_.empty() || samples_.empty())
            throw Error(name_ + ": not a pprof profile, or one without samples");
        choose_type();
        for (const std::string_view location : locations_) guarded([&] { read_location(location); });
        for (const std::string_view sample : samples_) guarded([&] { read_sample(sample); });
        profile_.assembler().add_problem("damaged", "Damaged parts of the file were skipped.", damaged_);
        profile_.assembler().add_problem("lost_locations", "Samples refer to locations that the file lacks.",
                                         lost_);
        return profile_.finish(unit_);
    }

  private:
    struct Function {
        std::int64_t name = 0, file = 0, line = 0;
    };
    struct ValueType {
        std::int64_t type = 0, unit = 0;
    };

    void guarded(auto read) {
        try {
            read();
        } catch (const protozero::exception&) {
            ++damaged_;
        }
    }

    static ValueType read_type(std::string_view part) {
        ValueType type;
        read_fields(part, into(varint(ValueTypeField::Type), type.type),
                    into(varint(ValueTypeField::Unit), type.unit));
        return type;
    }

    void read_function(std::string_view part) {
        Function function;
        std::uint64_t id = 0;
        read_fields(part, into(varint(FunctionField::Id), id),
                    into(varint(FunctionField::Name), function.name),
                    into(varint(FunctionField::FileName), function.file),
                    into(varint(FunctionField::StartLine), function.line));
        functions_[id] = function;
    }

    std::string_view text(std::int64_t index) const {
        return index >= 0 && static_cast<std::uint64_t>(index) < texts_.size()
                   ? texts_[static_cast<std::size_t>(index)]
                   : std::string_view();
    }

    /// Nanoseconds per unit; 0: not a time.
    static std::int64_t scale_of(std::string_view unit) {
        if (unit == "nanoseconds" || unit == "ns") return 1;
        if (unit == "microseconds" || unit == "us") return 1'000;
        if (unit == "milliseconds" || unit == "ms") return 1'000'000;
        if (unit == "seconds" || unit == "s") return 1'000'000'000;
        return 0;
    }

    /// The default of the file, else the last type that is a time, else the last type.
    void choose_type() {
        std::optional<std::size_t> chosen;
        for (std::size_t i = 0; i < types_.size(); ++i) {
            if (default_type_ != 0 && text(types_[i].type) == text(default_type_)) chosen = i;
        }
        for (std::size_t i = types_.size(); i-- > 0 && !chosen;) {
            if (scale_of(text(types_[i].unit)) != 0) chosen = i;
        }
        value_ = chosen.value_or(types_.size() - 1);
        const std::string_view unit = text(types_[value_].unit);
        scale_ = scale_of(unit);
        if (scale_ == 0 && unit == "count" && period_ > 0) {
            constexpr std::int64_t kLongestPeriod = std::int64_t{1} << 40;
            scale_ = std::min(period_, kLongestPeriod) * scale_of(text(period_type_.unit));
        }
        if (scale_ != 0) return;
        scale_ = 1;
        unit_ = unit.empty() ? "unit of the weights" : std::string(unit);
    }

    /// A location has several lines if functions were inlined, the innermost first.
    void read_location(std::string_view part) {
        std::uint64_t id = 0, address = 0;
        std::vector<std::uint32_t> sites;
        read_fields(
            part, into(varint(LocationField::Id), id), into(varint(LocationField::Address), address),
            on(bytes(LocationField::Line), [&](Message& m) { sites.push_back(read_line(m.get_view())); }));
        if (sites.empty()) sites.push_back(profile_.frame(address_text(address)));
        sites_of_[id] = std::move(sites);
    }
    static std::string address_text(std::uint64_t address) {
        if (address == 0) return "";
        std::string text;
        for (; address != 0; address >>= 4) text.insert(text.begin(), "0123456789abcdef"[address & 15]);
        return "0x" + text;
    }
    std::uint32_t read_line(std::string_view part) {
        std::uint64_t function = 0;
        read_fields(part, into(varint(LineField::FunctionId), function));
        const auto known = functions_.find(function);
        if (known == functions_.end()) return profile_.frame("");
        return profile_.frame(text(known->second.name), text(known->second.file), known->second.line);
    }

    void read_sample(std::string_view part) {
        stack_.clear();
        numbers_.clear();
        std::string thread;
        std::int32_t rank = -1;
        read_fields(
            part, each_varint(SampleField::LocationId, [&](std::uint64_t id) { add_location(id); }),
            each_varint(SampleField::Value,
                        [&](std::uint64_t value) { numbers_.push_back(static_cast<std::int64_t>(value)); }),
            on(bytes(SampleField::Label), [&](Message& m) { read_label(m.get_view(), thread, rank); }));
        std::ranges::reverse(stack_);
        std::int64_t weight = value_ < numbers_.size() ? numbers_[value_] : 0;
        weight = weight > SampledProfile::kMaxTimeNs / scale_ ? SampledProfile::kMaxTimeNs : weight * scale_;
        const std::string process = rank < 0 ? "" : "rank " + std::to_string(rank);
        profile_.add(profile_.lane(0, process, 0, thread.empty() ? "samples" : thread, rank), stack_, weight);
    }
    void add_location(std::uint64_t id) {
        const auto known = sites_of_.find(id);
        if (known == sites_of_.end()) {
            ++lost_;
            return;
        }
        profile_.check_size(stack_.size() + known->second.size());
        stack_.insert(stack_.end(), known->second.begin(), known->second.end());
    }
    void read_label(std::string_view part, std::string& thread, std::int32_t& rank) {
        std::int64_t key = 0, str = 0, num = 0;
        read_fields(part, into(varint(LabelField::Key), key), into(varint(LabelField::Str), str),
                    into(varint(LabelField::Num), num));
        const std::string_view name = text(key);
        if (name == "thread" || name == "thread name" || name == "thread_name") {
            thread = str != 0 ? std::string(text(str)) : "thread " + std::to_string(num);
        } else if ((name == "thread id" || name == "thread_id" || name == "tid") && thread.empty()) {
            thread = "thread " + (str != 0 ? std::string(text(str)) : std::to_string(num));
        } else if (name == "rank" && num >= 0 && num <= 0x7fffffff) {
            rank = static_cast<std::int32_t>(num);
        }
    }

    std::string name_;
    SampledProfile profile_;
    std::vector<ValueType> types_;
    std::vector<std::string_view> samples_, locations_, texts_;
    std::unordered_map<std::uint64_t, Function> functions_;
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> sites_of_;  ///< per location
    ValueType period_type_;
    std::int64_t period_ = 0, default_type_ = 0;
    std::size_t value_ = 0;   ///< the index of the value that is read
    std::int64_t scale_ = 1;  ///< nanoseconds per unit
    std::string unit_;        ///< empty: a time
    std::vector<std::uint32_t> stack_;
    std::vector<std::int64_t> numbers_;
    std::uint64_t damaged_ = 0, lost_ = 0;
};

Trace read_pprof_bytes(std::string_view text, const std::string& name) {
    return PprofReader(text, name).read();
}

/// The fields of a profile, as far as the head goes, have the right types; so do those of its value types.
bool is_pprof(std::span<const std::byte> head) noexcept {
    const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
    bool has_type = false;
    try {
        Message message(text);
        while (const std::uint32_t field = message.next_field()) {
            const std::uint32_t number = field >> 3;
            const bool is_message = number <= 6 || number == 11;
            if (number > 15 ||
                (number == 13 ? (field & 7) != 0 && (field & 7) != 2 : (field & 7) != (is_message ? 2 : 0)))
                return false;
            if (field != bytes(ProfileField::SampleType)) {
                message.skip();
                continue;
            }
            Message type(message.get_view());
            while (const std::uint32_t inner = type.next_field()) {
                if (inner != varint(ValueTypeField::Type) && inner != varint(ValueTypeField::Unit))
                    return false;
                type.skip();
            }
            has_type = true;
        }
    } catch (const protozero::exception&) {
        return has_type;  // cut at the end of the head
    }
    return has_type;
}

}  // namespace
}  // namespace marey

#else

namespace marey {
namespace {

Trace read_pprof_bytes(std::string_view, const std::string& name) {
    throw Error(name + ": this Marey was built without protozero and cannot read pprof profiles");
}

bool is_pprof(std::span<const std::byte>) noexcept {
    return false;
}

}  // namespace
}  // namespace marey

#endif

namespace marey {

FileFormat pprof_format() {
    static constexpr std::string_view kSuffixes[] = {".pb.gz", ".pprof", ".pprof.gz"};
    return {"pprof",
            "pprof profiles, for go tool pprof and continuous profilers",
            "the order of calls, values, counters",
            kSuffixes,
            [](const Trace& trace, const std::string& path) { write_pprof(trace, path); },
            is_pprof,
            read_pprof_bytes};
}

}  // namespace marey
