// write_arguments_test.cpp: inputs and outputs with PyTorch's keys, keywords with their own keys.
#include "formats/chrome/write_arguments.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <limits>
#include <sstream>

#include "analyze/trace_fixture.h"
#include "base/output_file.h"
#include "json/strict_json_fixture.h"
#include "trace/argument_fixture.h"

namespace marey {
namespace {

using testing::boolean;
using testing::integer;
using testing::real;

/// Hand-made values of a range.
class ChromeArgumentsTest : public ::testing::Test {
  protected:
    ChromeArgumentsTest() { fixture_.thread("main", {{"a", 0, 10}}); }

    Argument text(const std::string& text) { return testing::string_value(fixture_.string(text)); }
    Argument array(DType dtype, const std::vector<std::int64_t>& sizes,
                   const std::vector<std::int64_t>& strides = {}, bool is_defined = true) {
        TraceData& data = fixture_.data();
        ArrayInfo info;
        info.dtype = dtype;
        info.is_defined = is_defined;
        info.has_strides = !strides.empty();
        info.first_extent = static_cast<std::uint32_t>(data.array_extents.size());
        info.dimensions = static_cast<std::uint32_t>(sizes.size());
        data.array_extents.insert(data.array_extents.end(), sizes.begin(), sizes.end());
        data.array_extents.insert(data.array_extents.end(), strides.begin(), strides.end());
        Argument value;
        value.kind = ValueKind::Array;
        value.array = static_cast<Row>(data.arrays.size());
        data.arrays.push_back(info);
        return value;
    }
    Argument list(const std::vector<Argument>& items, bool truncated = false) {
        std::vector<Argument>& all = fixture_.data().list_items;
        Argument value;
        value.kind = ValueKind::List;
        value.truncated = truncated;
        value.list = {static_cast<std::uint32_t>(all.size()), static_cast<std::uint32_t>(items.size())};
        all.insert(all.end(), items.begin(), items.end());
        return value;
    }
    static Argument left_out(ValueKind kind) {
        Argument value;
        value.left_out = kind;
        return value;
    }
    void put(Argument value, ArgumentRole role = ArgumentRole::Input, const std::string& key = "") {
        value.role = role;
        fixture_.value(key, value);
    }

    /// The members, checked to be strict JSON with unique keys. Ends the fixture.
    std::string members(const RangeDetail* detail = nullptr, std::initializer_list<ChromeKey> numbers = {}) {
        const Trace trace = fixture_.trace();
        std::ostringstream stream;
        OutputFile file(stream);
        ChromeText out(file);
        ChromeArguments arguments(trace, out);
        out.put('{');
        arguments.begin();
        arguments.append_values(trace.range_arguments(0));
        if (detail != nullptr) arguments.append_detail(*detail);
        for (const ChromeKey number : numbers) arguments.append_number(number, 77);
        out.put('}');
        file.commit();
        std::string text = stream.str();
        StrictJson::Value value;
        EXPECT_EQ(StrictJson::parse(text, value), "") << text;
        return text;
    }

    TraceFixture fixture_;
};

// C18, C19
TEST_F(ChromeArgumentsTest, InputsAreListsWithOneEntryPerInput) {
    put(array(DType::Float32, {2, 3}, {3, 1}));
    put(integer(1));
    put(list({array(DType::Int64, {4}), array(DType::Int64, {}, {})}));
    put(list({integer(1), integer(2)}));
    put(text("same"));
    EXPECT_EQ(members(), R"({"Input Dims":[[2,3],[],[[4],[]],[],[]],)"
                         R"("Input type":["float","Scalar","TensorList","ScalarList",""],)"
                         R"("Input Strides":[[3,1],[],[[],[]],[],[]],)"
                         R"("Concrete Inputs":["","1","","[1, 2]","same"]})");
}

// C19
TEST_F(ChromeArgumentsTest, ElementTypesHaveCPlusPlusNames) {
    for (const DType dtype :
         {DType::Bool, DType::Int8, DType::Int16, DType::Int32, DType::Int64, DType::UInt8, DType::Float16,
          DType::BFloat16, DType::Float32, DType::Float64, DType::Complex64, DType::Complex128, DType::UInt32,
          DType::Float8E4M3, DType::Float8E5M2FNUZ, DType::Bits8, static_cast<DType>(200)}) {
        put(array(dtype, {}));
    }
    EXPECT_NE(
        members().find(R"("Input type":["bool","signed char","short int","int","long int","unsigned char",)"
                       R"("c10::Half","c10::BFloat16","float","double","c10::complex<float>",)"
                       R"("c10::complex<double>","unsigned int","c10::Float8_e4m3fn","c10::Float8_e5m2fnuz",)"
                       R"("c10::bits8","other"])"),
        std::string::npos);
}

// C15, C18
TEST_F(ChromeArgumentsTest, UndefinedArraysAndListsWithOneAreEmpty) {
    put(array(DType::Float32, {}, {}, false));
    put(list({array(DType::Float32, {1}), array(DType::Float32, {}, {}, false)}));
    EXPECT_EQ(
        members(),
        R"({"Input Dims":[[],[]],"Input type":["",""],"Input Strides":[[],[]],"Concrete Inputs":["",""]})");
}

// C19
TEST_F(ChromeArgumentsTest, ATruncatedListOfArraysIsEmpty) {
    put(list({array(DType::Float32, {1}), array(DType::Float32, {2})}, true));
    EXPECT_EQ(
        members(),
        R"({"Input Dims":[[]],"Input type":["TensorList"],"Input Strides":[[]],"Concrete Inputs":[""]})");
}

// K18
TEST_F(ChromeArgumentsTest, AnEmptyListOfArraysIsAListOfTensors) {
    Argument arrays = list({});
    arrays.left_out = ValueKind::Array;
    put(arrays);
    put(list({}));
    EXPECT_EQ(members(), R"({"Input Dims":[[],[]],"Input type":["TensorList","ScalarList"],)"
                         R"("Input Strides":[[],[]],"Concrete Inputs":["","[]"]})");
}

TEST_F(ChromeArgumentsTest, ScalarTextsAreScalars) {
    Argument complex = text("1.+2.j");
    complex.left_out = ValueKind::Double;
    put(complex);
    put(list({complex, complex}));
    put(text("1.+2.j"));
    EXPECT_EQ(members(), R"({"Input Dims":[[],[],[]],"Input type":["Scalar","ScalarList",""],)"
                         R"("Input Strides":[[],[],[]],)"
                         R"("Concrete Inputs":["1.+2.j","[1.+2.j, 1.+2.j]","1.+2.j"]})");
}

// C17
TEST_F(ChromeArgumentsTest, ValuesThatWereNotRecordedAreEmpty) {
    put(left_out(ValueKind::Int));
    put(left_out(ValueKind::List));
    put(left_out(ValueKind::None));
    EXPECT_EQ(members(),
              R"({"Input Dims":[[],[],[]],"Input type":["Scalar","",""],"Input Strides":[[],[],[]],)"
              R"("Concrete Inputs":["","",""]})");
}

TEST_F(ChromeArgumentsTest, ConcreteInputsAreWrittenAsPyTorchPrintsThem) {
    put(boolean(true));
    put(real(2));
    put(real(0.5));
    put(real(0.1));
    put(real(-std::numeric_limits<double>::infinity()));
    put(list({real(1), boolean(false)}, true));
    put(list({}));
    put(text("a \"quoted\"\n"));
    EXPECT_NE(members().find(R"("Concrete Inputs":["True","2.","0.5","0.10000000000000001","-inf",)"
                             R"("[1., False, ...]","[]","a \"quoted\"\n"])"),
              std::string::npos);
}

// C21
TEST_F(ChromeArgumentsTest, OutputsHaveSeparateKeys) {
    put(array(DType::Float32, {7}), ArgumentRole::Output);
    put(integer(3), ArgumentRole::Input);
    EXPECT_EQ(
        members(),
        R"({"Input Dims":[[]],"Input type":["Scalar"],"Input Strides":[[]],"Concrete Inputs":["3"],)"
        R"("Output Dims":[[7]],"Output type":["float"],"Output Strides":[[]],"Concrete Outputs":[""]})");
}

TEST_F(ChromeArgumentsTest, KeywordsKeepTheirKeysAndDuplicatesAreRenamed) {
    put(integer(1), ArgumentRole::Keyword, "Input Dims");
    put(integer(2), ArgumentRole::Keyword, "n");
    put(integer(3), ArgumentRole::Keyword, "n");
    put(integer(4), ArgumentRole::Keyword, "n (3)");
    put(integer(5), ArgumentRole::Keyword);
    put(integer(6), ArgumentRole::Keyword);
    put(array(DType::Int8, {2, 2}), ArgumentRole::Keyword, "grid");
    put(left_out(ValueKind::Array), ArgumentRole::Keyword, "none");
    EXPECT_EQ(members(), R"x({"Input Dims (1)":1,"n":2,"n (3)":3,"n (3) (4)":4,"value":5,"value (6)":6,)x"
                         R"("grid":{"dims":[2,2],"type":"signed char"},"none":null})");
}

TEST_F(ChromeArgumentsTest, IdsOfARangeAreWrittenIfItHasThem) {
    const RangeDetail all{0, 5, 0, ~0ull};
    EXPECT_EQ(members(&all),
              R"({"Sequence number":5,"Fwd thread id":0,"Record function id":18446744073709551615})");
}

TEST_F(ChromeArgumentsTest, MissingIdsAreLeftOut) {
    const RangeDetail none{0, -1, 3, 0};
    EXPECT_EQ(members(&none), "{}");
}

TEST_F(ChromeArgumentsTest, AnIdGivenInTheValuesIsNotGenerated) {
    put(integer(5), ArgumentRole::Keyword, "correlation");
    put(integer(6), ArgumentRole::Keyword, "Sequence number");
    const RangeDetail detail{0, 8, 0, 0};
    EXPECT_EQ(members(&detail, {ChromeKey::Correlation, ChromeKey::ExternalId}),
              R"({"correlation":5,"Sequence number":6,"Fwd thread id":0,"External id":77})");
}

TEST_F(ChromeArgumentsTest, KeysThatDifferOnlyInInvalidBytesAreRenamed) {
    put(integer(1), ArgumentRole::Keyword, "a\xFF");
    put(integer(2), ArgumentRole::Keyword, "a\xFE");
    EXPECT_EQ(members(), "{\"a\xEF\xBF\xBD\":1,\"a\xEF\xBF\xBD (2)\":2}");
}

TEST_F(ChromeArgumentsTest, ValuesThatDifferAnywhereAreNotServedFromTheCache) {
    const auto with_role = [](Argument value, ArgumentRole role, StringId key = 0) {
        value.role = role;
        value.key = key;
        return value;
    };
    constexpr auto kInput = ArgumentRole::Input;
    const StringId correlation = fixture_.string("correlation"), other = fixture_.string("other");
    const std::vector<std::vector<Argument>> lists = {
        {with_role(array(DType::Float32, {2, 3}, {3, 1}), kInput)},
        {with_role(array(DType::Float32, {2, 3}, {3, 1}), kInput)},  // equal, at another position
        {with_role(array(DType::Float32, {2, 3}, {1, 2}), kInput)},
        {with_role(array(DType::Float64, {2, 3}, {3, 1}), kInput)},
        {with_role(array(DType::Float32, {2, 3, 3, 1}), kInput)},
        {with_role(array(DType::Float32, {2, 3}, {3, 1}, false), kInput)},
        {with_role(array(DType::Float32, {2, 3}, {3, 1}), ArgumentRole::Output)},
        {with_role(integer(2), kInput), with_role(integer(3), kInput)},
        {with_role(integer(3), kInput), with_role(integer(2), kInput)},
        {with_role(integer(2), ArgumentRole::Keyword, correlation)},
        {with_role(integer(2), ArgumentRole::Keyword, other)},
        {with_role(real(2), ArgumentRole::Keyword, other)},
        {},
    };
    const Trace trace = fixture_.trace();
    std::ostringstream stream;
    OutputFile file(stream);
    ChromeText out(file);
    const auto written = [&](ChromeArguments& arguments, const std::vector<Argument>& values) {
        const std::uint64_t start = out.position();
        arguments.begin();
        arguments.append_values(values);
        arguments.append_number(ChromeKey::Correlation, 77);
        return std::string(out.since(start));
    };
    ChromeArguments arguments(trace, out);
    for (int round = 0; round < 3; ++round) {
        for (const std::vector<Argument>& values : lists) {
            ChromeArguments fresh(trace, out);
            EXPECT_EQ(written(arguments, values), written(fresh, values)) << round;
        }
    }
}

// Cached values, except for the number that is unique to each range.
TEST_F(ChromeArgumentsTest, EveryRangeHasItsOwnCorrelationEvenIfOtherValuesRepeat) {
    const auto values_of = [&](std::int64_t correlation, std::int64_t registers, bool is_twice) {
        Argument own = integer(correlation), twice = integer(-correlation), rest = integer(registers);
        own.key = twice.key = fixture_.string("correlation");
        rest.key = fixture_.string("registers");
        own.role = twice.role = rest.role = ArgumentRole::Keyword;
        return is_twice ? std::vector<Argument>{rest, own, twice} : std::vector<Argument>{own, rest};
    };
    std::vector<std::vector<Argument>> all;
    std::string expected;
    for (std::int64_t i = 1; i <= 40; ++i) {
        const std::int64_t registers = i % 3;
        all.push_back(values_of(i * i, registers, i % 2 == 0));
        const std::string own = "\"correlation\":" + std::to_string(i * i);
        const std::string rest = "\"registers\":" + std::to_string(registers);
        expected += i % 2 == 0 ? rest + "," + own + ",\"correlation (3)\":" + std::to_string(-i * i) + "\n"
                               : own + "," + rest + "\n";
    }
    const Trace trace = fixture_.trace();
    std::ostringstream stream;
    OutputFile file(stream);
    ChromeText out(file);
    ChromeArguments arguments(trace, out);
    for (const std::vector<Argument>& values : all) {
        arguments.begin();
        arguments.append_values(values);
        arguments.append_number(ChromeKey::Correlation, 77);  // already given
        out.put('\n');
    }
    file.commit();
    EXPECT_EQ(stream.str(), expected);
}

}  // namespace
}  // namespace marey
