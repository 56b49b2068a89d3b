// json_scanner.h: reads strict JSON (RFC 8259, UTF-8) piece by piece, without keeping any of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace marey {

enum class JsonToken : std::uint8_t {
    BeginObject,
    EndObject,
    BeginArray,
    EndArray,
    Key,
    String,
    Number,
    True,
    False,
    Null,
    End,    ///< of the text, after one whole value
    Error,  ///< from here on every token is an error
};

/// Accepts nothing but strict JSON: one value, no trailing commas, no comments, no NaN, no byte that is not
/// UTF-8, no lone surrogate escapes.
class JsonScanner {
  public:
    /// Deeper values are an error.
    static constexpr std::size_t kMaxDepth = 1000;

    /// `text` must outlive this.
    explicit JsonScanner(std::string_view text) : text_(text) {}

    JsonToken next();
    /// The token's text as written: for strings and keys, the part between the quotes.
    std::string_view raw() const noexcept { return raw_; }
    /// The value of a string or key.
    std::string text() const;
    /// Skips the rest of the value whose first token next() returned last. False: there is an error.
    bool skip(JsonToken first);

    std::size_t offset() const noexcept { return at_; }
    std::size_t depth() const noexcept { return open_.size(); }
    /// The error and its position, after an Error.
    const std::string& error() const noexcept { return error_; }

  private:
    JsonToken fail(const char* what);
    JsonToken value();
    JsonToken after_value();
    JsonToken word(std::string_view expected, JsonToken token);
    JsonToken number();
    JsonToken string(JsonToken token);
    bool escape();
    bool character();
    bool digits();
    void space() noexcept;
    int peek() const noexcept { return at_ < text_.size() ? static_cast<unsigned char>(text_[at_]) : -1; }

    enum class State : std::uint8_t { Value, FirstKey, FirstItem, After };

    std::string_view text_;
    std::size_t at_ = 0;
    State state_ = State::Value;
    std::vector<bool> open_;  ///< true: an object
    std::string_view raw_;
    std::string error_;
};

/// "" for a complete strict JSON value, else the error.
std::string json_error(std::string_view text);
/// Whether `text` is one strict JSON value with nothing but white space around it.
bool is_json(std::string_view text);

}  // namespace marey
