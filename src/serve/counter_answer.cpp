// counter_answer.cpp: /api/counter and /api/instants: values and marks by pixels.
#include <algorithm>
#include <map>

#include "serve/api.h"

namespace marey::serve {
namespace {

constexpr std::uint32_t kCounterMagic = 0x31544e43;   // "CNT1"
constexpr std::uint32_t kInstantsMagic = 0x31534e49;  // "INS1"

std::uint32_t asked_pixels(const Question& question) {
    return static_cast<std::uint32_t>(question.query.integer("pixels", 1, kMaxPixels));
}

}  // namespace

Answer answer_counter(const Question& question) {
    const Row counter = question.row("counter", question.loaded.counters().size());
    const Selection span = question.span();
    const std::uint32_t pixels = asked_pixels(question);
    const CounterSeries::Picture picture =
        question.loaded.counters()[counter].picture(span.begin_ns, span.end_ns, pixels);
    Answer answer{200, kBinary, {}};
    append_number(answer.body, kCounterMagic);
    append_number(answer.body, pixels);
    append_column(answer.body, std::span<const double>(picture.least));
    append_column(answer.body, std::span<const double>(picture.greatest));
    append_column(answer.body, std::span<const double>(picture.last));
    return answer;
}

Answer answer_instants(const Question& question) {
    const Row thread = question.row("thread", question.trace().threads().size());
    const Selection span = question.span();
    const std::uint32_t pixels = asked_pixels(question);
    const double scale = static_cast<double>(pixels) /
                         std::max(1.0, static_cast<double>(span.end_ns) - static_cast<double>(span.begin_ns));
    struct Mark {
        Row instant;
        std::uint32_t count;
    };
    std::map<std::uint32_t, Mark> marks;  // by pixel
    const InstantColumns instants = question.trace().instants();
    for (Row row = 0; row < instants.size(); ++row) {
        const std::int64_t time_ns = instants.time_ns[row];
        if (instants.thread[row] != thread || time_ns < span.begin_ns || time_ns > span.end_ns) continue;
        const double place = static_cast<double>(time_ns - span.begin_ns) * scale;
        const auto pixel = std::min(static_cast<std::uint32_t>(place), pixels - 1);
        ++marks.emplace(pixel, Mark{row, 0}).first->second.count;
    }
    Answer answer{200, kBinary, {}};
    append_number(answer.body, kInstantsMagic);
    append_number(answer.body, static_cast<std::uint32_t>(marks.size()));
    for (const auto& [pixel, mark] : marks) append_number(answer.body, pixel);
    for (const auto& [pixel, mark] : marks) append_number(answer.body, instants.site[mark.instant]);
    for (const auto& [pixel, mark] : marks) append_number(answer.body, mark.instant);
    for (const auto& [pixel, mark] : marks) append_number(answer.body, mark.count);
    return answer;
}

}  // namespace marey::serve
