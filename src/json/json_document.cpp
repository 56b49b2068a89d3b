// json_document.cpp: builds the tree of values, and reads single values.
#include "json/json_document.h"

#include <charconv>
#include <limits>

namespace marey {

JsonDocument::JsonDocument(std::string_view text) {
    JsonScanner scanner(text);
    std::vector<std::uint32_t> open;
    while (true) {
        const JsonToken token = scanner.next();
        if (token == JsonToken::End) break;
        if (token == JsonToken::Error || nodes_.size() == std::numeric_limits<std::uint32_t>::max()) {
            error_ = token == JsonToken::Error ? scanner.error() : "too many values";
            nodes_.clear();
            break;
        }
        const auto index = static_cast<std::uint32_t>(nodes_.size());
        nodes_.push_back({scanner.raw(), index + 1, token});
        if (token == JsonToken::BeginObject || token == JsonToken::BeginArray) open.push_back(index);
        if (token == JsonToken::EndObject || token == JsonToken::EndArray) {
            nodes_[open.back()].next = index + 1;
            open.pop_back();
        }
    }
}

JsonDocument::Value JsonDocument::root() const noexcept {
    return nodes_.empty() ? Value() : Value(this, 0);
}

std::string JsonDocument::Value::text() const {
    std::string value;
    if (token() == JsonToken::String) append_unescaped(value, raw());
    return value;
}

std::optional<double> JsonDocument::Value::number() const {
    if (token() != JsonToken::Number) return std::nullopt;
    double value = 0;
    const std::string_view text = raw();
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    if (result.ec != std::errc()) return std::nullopt;
    return value;
}

std::optional<std::int64_t> JsonDocument::Value::integer() const {
    if (token() != JsonToken::Number && token() != JsonToken::String) return std::nullopt;
    std::int64_t value = 0;
    const std::string_view text = raw();
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
    return value;
}

std::optional<std::int64_t> JsonDocument::Value::scaled(int decimals) const {
    std::int64_t value = 0;
    if (token() != JsonToken::Number || !scaled_decimal(raw(), decimals, value)) return std::nullopt;
    return value;
}

JsonDocument::Value JsonDocument::Value::operator[](std::string_view name) const {
    if (!is_object()) return {};
    const std::vector<Node>& nodes = document_->nodes_;
    for (std::uint32_t at = index_ + 1; nodes[at].token != JsonToken::EndObject; at = nodes[at + 1].next) {
        if (nodes[at].raw == name) return Value(document_, at + 1);
    }
    return {};
}

std::string_view JsonDocument::Value::json() const {
    if (document_ == nullptr) return "null";
    const std::string_view last = document_->nodes_[document_->nodes_[index_].next - 1].raw;
    const bool is_string = token() == JsonToken::String;  // without its quotes
    const char* const begin = raw().data() - (is_string ? 1 : 0);
    return {begin, static_cast<std::size_t>(last.data() + last.size() + (is_string ? 1 : 0) - begin)};
}

std::vector<JsonDocument::Value> JsonDocument::Value::items() const {
    std::vector<Value> values;
    each_item([&](const Value& value) { values.push_back(value); });
    return values;
}

}  // namespace marey
