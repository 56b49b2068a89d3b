// json_document.h: a whole strict JSON text as a tree of values, for files that are read in any order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/json_cursor.h"
#include "json/json_scanner.h"

namespace marey {

/// The values of a text, which must outlive this. Every function works on every kind of value: an array has
/// no members, and the number of a string is absent.
class JsonDocument {
  public:
    class Value;

    /// error() gives the reason if the text is not JSON; the root is null then.
    explicit JsonDocument(std::string_view text);

    const std::string& error() const noexcept { return error_; }
    Value root() const noexcept;

  private:
    struct Node {
        std::string_view raw;
        std::uint32_t next = 0;  ///< the node after this value
        JsonToken token = JsonToken::Null;
    };

    std::vector<Node> nodes_;  ///< in the order of the text: keys before their values, ends of containers too
    std::string error_;
};

class JsonDocument::Value {
  public:
    Value() = default;

    bool is_null() const noexcept { return token() == JsonToken::Null; }
    bool is_object() const noexcept { return token() == JsonToken::BeginObject; }
    bool is_array() const noexcept { return token() == JsonToken::BeginArray; }
    bool is_true() const noexcept { return token() == JsonToken::True; }
    /// "" if it is not a string.
    std::string text() const;
    std::optional<double> number() const;
    /// A number without a fraction; strings of digits too, as OTLP writes them.
    std::optional<std::int64_t> integer() const;
    /// A number times 10^`decimals`, rounded; absent if it does not fit.
    std::optional<std::int64_t> scaled(int decimals) const;
    /// The member of that name; null if there is none. Takes time linear in the number of members.
    Value operator[](std::string_view name) const;

    /// Calls use(Value) for each item of an array.
    void each_item(auto use) const {
        if (!is_array()) return;
        const std::vector<Node>& nodes = document_->nodes_;
        for (std::uint32_t at = index_ + 1; nodes[at].token != JsonToken::EndArray; at = nodes[at].next)
            use(Value(document_, at));
    }
    /// The items of an array.
    std::vector<Value> items() const;
    /// Calls use(std::string key, Value) for each member of an object.
    void each_member(auto use) const {
        if (!is_object()) return;
        const std::vector<Node>& nodes = document_->nodes_;
        for (std::uint32_t at = index_ + 1; nodes[at].token != JsonToken::EndObject;
             at = nodes[at + 1].next) {
            std::string key;
            append_unescaped(key, nodes[at].raw);
            use(key, Value(document_, at + 1));
        }
    }
    /// The value itself, as it stands in the text.
    std::string_view json() const;

  private:
    friend class JsonDocument;
    Value(const JsonDocument* document, std::uint32_t index) : document_(document), index_(index) {}
    JsonToken token() const noexcept {
        return document_ == nullptr ? JsonToken::Null : document_->nodes_[index_].token;
    }
    std::string_view raw() const noexcept { return document_->nodes_[index_].raw; }

    const JsonDocument* document_ = nullptr;
    std::uint32_t index_ = 0;
};

}  // namespace marey
