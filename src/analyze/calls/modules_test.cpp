// modules_test.cpp: the module table that is read from site values.
#include <marey/modules.h>

#include <initializer_list>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "analyze/trace_fixture.h"

namespace marey {
namespace {

/// Adds module information to the last range.
class Modules {
  public:
    explicit Modules(TraceFixture& fixture) : fixture_(fixture) {}

    Argument text(const std::string& value) {
        Argument argument;
        argument.kind = ValueKind::String;
        argument.string = fixture_.string(value);
        return argument;
    }
    static Argument number(std::int64_t value) {
        Argument argument;
        argument.kind = ValueKind::Int;
        argument.integer = value;
        return argument;
    }
    static Argument array() {
        Argument argument;
        argument.kind = ValueKind::Array;
        return argument;
    }
    Argument list(std::initializer_list<Argument> items) {
        Argument argument;
        argument.kind = ValueKind::List;
        std::vector<Argument>& all = fixture_.data().list_items;
        argument.list = {static_cast<std::uint32_t>(all.size()), static_cast<std::uint32_t>(items.size())};
        all.insert(all.end(), items);
        return argument;
    }
    Modules& set(std::string_view key, Argument value) {
        value.role = ArgumentRole::Site;
        fixture_.value(std::string(key), value);
        return *this;
    }
    Modules& module(const std::string& name, std::int64_t number_of_class, std::int64_t address) {
        return set(module_keys::kKind, text("module"))
            .set(module_keys::kClass, text(name))
            .set(module_keys::kNumber, number(number_of_class))
            .set(module_keys::kSelf, number(address));
    }

  private:
    TraceFixture& fixture_;
};

TEST(ModuleTableTest, ATraceWithoutModulesHasNone) {
    const Trace trace = TraceFixture().thread("main", {{"work", 0, 10}}).trace();
    const ModuleTable table(trace);
    EXPECT_TRUE(table.empty());
    EXPECT_FALSE(table.has_parts());
    EXPECT_EQ(table.find(0), nullptr);
    EXPECT_EQ(table.find(7), nullptr) << "no such range";
    EXPECT_EQ(table.find_site(9), nullptr);
    EXPECT_EQ(table.hierarchy(0), "");
}

TEST(ModuleTableTest, EveryCallOfAnObjectUsesTheFactsOfItsFirstCall) {
    TraceFixture fixture;
    fixture.thread("main", {{"nn.Module: Linear_3", 0, 10}});
    Modules(fixture)
        .module("Linear", 3, 0x7000)
        .set(module_keys::kFunction, Modules(fixture).text("forward"));
    fixture.thread("other", {{"nn.Module: Linear_3", 0, 10}, {"plain", 20, 10}});
    const Trace trace = fixture.trace();
    const ModuleTable table(trace);
    for (const Row row : {Row{0}, Row{1}}) {
        const ModuleInfo* const info = table.find(row);
        ASSERT_NE(info, nullptr) << row;
        EXPECT_EQ(info->class_name, "Linear");
        EXPECT_EQ(info->number, 3u);
        EXPECT_EQ(info->self, 0x7000u);
        EXPECT_EQ(info->function, "forward");
        EXPECT_FALSE(info->is_optimizer);
    }
    EXPECT_EQ(table.find(2), nullptr);
    EXPECT_EQ(table.find_site(trace.ranges().site[0]), table.find(0));
}

TEST(ModuleTableTest, ParametersHaveGradientsAndState) {
    TraceFixture fixture;
    fixture.thread("main", {{"Optimizer.step#SGD.step", 0, 10}});
    Modules modules(fixture);
    modules.module("SGD", 0, 1).set(module_keys::kKind, modules.text("optimizer"));
    modules.set(module_keys::kParameter, modules.list({modules.text("w"), Modules::array(), Modules::array(),
                                                       modules.text("momentum"), Modules::array()}));
    modules.set(module_keys::kParameter, modules.list({modules.text("b"), Modules::array(), Argument{}}));
    modules.set(module_keys::kParameter, modules.list({modules.text("no array"), modules.text("x"), {}}));
    modules.set(module_keys::kParameter, modules.text("no list"));
    const Trace trace = fixture.trace();
    const ModuleTable table(trace);
    const ModuleInfo* const info = table.find(0);
    ASSERT_NE(info, nullptr);
    EXPECT_TRUE(info->is_optimizer);
    ASSERT_EQ(info->parameters.size(), 2u);
    EXPECT_EQ(info->parameters[0].name, "w");
    EXPECT_EQ(info->parameters[0].gradient.kind, ValueKind::Array);
    ASSERT_EQ(info->parameters[0].state.size(), 1u);
    EXPECT_EQ(info->parameters[0].state[0].name, "momentum");
    EXPECT_EQ(info->parameters[1].gradient.kind, ValueKind::None);
    EXPECT_TRUE(info->parameters[1].state.empty());
    EXPECT_EQ(table.hierarchy(0), "") << "an optimizer is not part of a hierarchy";
}

TEST(ModuleTableTest, TheHierarchyNamesPartsByTheModuleAroundThem) {
    TraceFixture fixture;
    // Values belong to the last range, so each object needs its own call first.
    fixture.thread("first calls", {{"Net_0", 0, 1}});
    Modules modules(fixture);
    modules.module("Net", 0, 100).set(module_keys::kHasParts, Modules::number(1));
    modules.set(module_keys::kChild, modules.list({modules.text("fc1"), Modules::number(200)}));
    fixture.thread("second", {{"Linear_0", 0, 1}});
    modules.module("Linear", 0, 200);
    fixture.thread("third", {{"Linear_1", 0, 1}});
    modules.module("Linear", 1, 300);
    fixture.thread("main", {{"Net_0",
                             100,
                             100,
                             {{"Linear_0", 110, 10, {{"op", 112, 2}}},
                              {"Linear_1", 130, 10, {{"op", 132, 2}}},
                              {"Net_0", 150, 10}}},
                            {"op", 300, 1}});
    const Trace trace = fixture.trace();
    const ModuleTable table(trace);
    EXPECT_TRUE(table.has_parts());
    const auto hierarchy_at = [&](std::int64_t start) {
        for (Row row = 0; row < trace.ranges().size(); ++row) {
            if (trace.ranges().start_ns[row] == start) return table.hierarchy(row);
        }
        return std::string("no such range");
    };
    EXPECT_EQ(hierarchy_at(100), "TOP(Net)::forward");
    EXPECT_EQ(hierarchy_at(112), "TOP(Net)::forward.fc1(Linear)::forward");
    EXPECT_EQ(hierarchy_at(132), "TOP(Net)::forward.Linear_1(Linear)::forward") << "it has no recorded name";
    EXPECT_EQ(hierarchy_at(150), "TOP(Net)::forward.SELF(Net)::forward");
    EXPECT_EQ(hierarchy_at(300), "");
    EXPECT_EQ(table.hierarchy(static_cast<Row>(trace.ranges().size())), "");
}

TEST(ModuleTableTest, AnObjectWithoutAClassIsNotAModule) {
    TraceFixture fixture;
    fixture.thread("main", {{"odd", 0, 10}});
    Modules(fixture).set(module_keys::kNumber, Modules::number(2));
    EXPECT_TRUE(ModuleTable(fixture.trace()).empty());
}

}  // namespace
}  // namespace marey
