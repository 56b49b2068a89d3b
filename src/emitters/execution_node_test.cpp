// execution_node_test.cpp: the JSON of one node of an execution trace.
#include "emitters/execution_node.h"

#include <gtest/gtest.h>

#include <limits>

#include "json/strict_json_fixture.h"

namespace marey {
namespace {

StrictJson::Value parsed(const std::string& text) {
    StrictJson::Value value;
    EXPECT_EQ(StrictJson::parse(text, value), "") << text;
    return value;
}

// E11
TEST(ExecutionNode, ValuesOfEveryKindHaveTheirFourParts) {
    const std::int64_t sizes[] = {2, 3}, strides[] = {3, 1};
    const ArrayView array{
        .dtype = DType::Float16, .device = {DeviceType::Cuda, 1}, .sizes = sizes, .strides = strides};
    const ArrayView undefined{.is_defined = false};
    const Value items[] = {Value(array), Value(1)};
    const Value values[] = {Value(array),  Value(undefined), Value(std::span<const Value>(items)),
                            Value(true),   Value(-5),        Value(1.0),
                            Value("\"\n"), Value()};
    const ArrayKey ids[] = {{10, 11}, {0, 0}, {12, 11}};
    EXPECT_EQ(array_list(values).size(), 3u);
    EXPECT_EQ(values_json(values, ids),
              R"x({"values": [[10,11,0,6,2,"cuda:1"],[0,0,0,0,0,"cpu"],[[12,11,0,6,2,"cuda:1"],1],)x"
              R"x(true,-5,1.0,"\"\n","<None>"], )x"
              R"x("shapes": [[2,3],[],[[2,3],[]],[],[],[],[],[]], )x"
              R"x("types": ["Tensor(c10::Half)","Tensor(nullptr (uninitialized))",)x"
              R"x("GenericList[Tensor(c10::Half),Int]","Bool","Int","Double","String","None"], )x"
              R"x("strides": [[3,1],[],[[3,1],[]],[],[],[],[],[]]})x");
}

TEST(ExecutionNode, ValuesWithoutANumberAreWrittenAsTheirKind) {
    const Value values[] = {Value::shown_as("meta"),
                            Value::shown_as("<Generator>"),
                            Value::scalar_text(ValueKind::Double, "1.+2.j"),
                            Value::scalar_text(ValueKind::Int, "2*s0"),
                            Value::scalar_text(ValueKind::Double, "zf1"),
                            Value::scalar_text(ValueKind::Bool, "s0 < 3"),
                            Value("<text>")};
    const std::string json = values_json(values, {});
    EXPECT_NE(
        json.find(
            R"("values": ["meta","<Generator>","<ComplexDouble>","<SymInt>","<SymFloat>","<SymBool>","<text>"])"),
        std::string::npos)
        << json;
    EXPECT_NE(
        json.find(
            R"("types": ["Device","Generator","ComplexDouble","SymInt","SymFloat","SymBool","String"])"),
        std::string::npos)
        << json;
}

TEST(ExecutionNode, NumbersThatJsonLacksAreQuoted) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const Value values[] = {Value(kInfinity), Value(-kInfinity),
                            Value(std::numeric_limits<double>::quiet_NaN()), Value(1e300)};
    const auto json = parsed(values_json(values, {}));
    EXPECT_EQ(json["values"].items[0].text, "inf");
    EXPECT_EQ(json["values"].items[1].text, "-inf");
    EXPECT_EQ(json["values"].items[2].text, "nan");
    EXPECT_EQ(json["values"].items[3].number(), 1e300);
}

TEST(ExecutionNode, ListsAreTruncatedAndElementCountsSaturate) {
    const std::vector<Value> many(5000, Value(1));
    const std::int64_t huge[] = {std::int64_t{1} << 40, std::int64_t{1} << 40};
    const ArrayView array{.sizes = huge};
    const Value values[] = {Value(std::span<const Value>(many)), Value(array)};
    const auto json = parsed(values_json(values, {}));
    EXPECT_EQ(json["values"].items[0].items.size(), 4096u);
    EXPECT_EQ(json["shapes"].items[0].items.size(), 4096u);
    EXPECT_EQ(json["values"].items[1].items[3].text, "18446744073709551615");
}

// E7 E10
TEST(ExecutionNode, NamesAndKeywordsAreEscaped) {
    NodeProperties facts;
    facts.id = 5;
    facts.name = "a \"b\" \xff";
    facts.parent = 2;
    const std::string_view texts[] = {"x", "y"};
    const Value list[] = {Value(texts[0]), Value(texts[1])};
    const KeyedValue keywords[] = {{"kernel_file", Value("k\\.cu")},
                                   {"scope", Value("not this one")},
                                   {"a \"key\"", Value(std::span<const Value>(list))},
                                   {"rate", Value(0.5)}};
    const std::string bare = values_json({}, {});
    const auto node = parsed(node_json(facts, bare, bare, attributes_json(facts, keywords)));
    EXPECT_EQ(node["name"].text, "a \"b\" \xef\xbf\xbd");
    EXPECT_EQ(node["ctrl_deps"].text, "2");
    std::vector<std::string> names;
    for (const auto& attribute : node["attrs"].items) names.push_back(attribute["name"].text);
    EXPECT_EQ(names, (std::vector<std::string>{"rf_id", "fw_parent", "seq_id", "scope", "tid", "fw_tid",
                                               "op_schema", "kernel_backend", "kernel_file", "tensor_range",
                                               "a \"key\"", "rate"}));
    EXPECT_EQ(node["attrs"].items[8]["value"].text, "k\\.cu");
    EXPECT_EQ(node["attrs"].items[10]["value"].text, "[\"x\",\"y\"]");
}

}  // namespace
}  // namespace marey
