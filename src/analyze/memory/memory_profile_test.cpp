// memory_profile_test.cpp: array ids, the data flow between operators, and memory categories.
#include <marey/memory_profile.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <marey/modules.h>

#include "analyze/flops/operation_fixture.h"
#include "analyze/memory/memory_flow.h"

namespace marey {
namespace {

constexpr auto kRead = ArrayAccess::Read;
constexpr auto kWrite = ArrayAccess::Write;

/// Operators and reports one after another, ten nanoseconds each.
class TrainingProgram {
  public:
    struct Array {
        std::uint64_t object;
        std::uint64_t storage;
        ArrayAccess access = kRead;
        std::int64_t elements = 4;
    };

    TrainingProgram() : lane_(assembler_.add_lane({.thread = assembler_.add_thread({})})) {
        assembler_.add_process({});
    }

    TrainingProgram& op(const std::string& name, const std::vector<Array>& inputs,
                        Scope scope = Scope::Function) {
        return at(time_, 8, name, inputs, scope).wait();
    }
    /// Opens a range that encloses everything up to end().
    TrainingProgram& begin(const std::string& name, const std::vector<Array>& inputs,
                           Scope scope = Scope::Function) {
        open_.push_back({time_++, name, inputs, scope});
        return *this;
    }
    TrainingProgram& end() {
        const Open open = open_.back();
        open_.pop_back();
        return at(open.start, time_ - open.start, open.name, open.inputs, open.scope).wait();
    }
    TrainingProgram& take(std::uint64_t address, std::int64_t bytes = 16) {
        assembler_.add_memory(0, {.time_ns = time_, .address = address, .bytes = bytes});
        return wait();
    }
    TrainingProgram& deallocate(std::uint64_t address, std::int64_t bytes = 16) {
        return take(address, -bytes);
    }
    /// Adds a call of a module with this as its only parameter.
    TrainingProgram& module(const std::string& name, Array parameter) {
        const std::uint32_t site =
            assembler_.site({.name = assembler_.string(name), .scope = Scope::PythonFunction});
        const auto range = assembler_.add_range(lane_, time_, 5, site);
        Argument cls;
        cls.kind = ValueKind::String;
        cls.role = ArgumentRole::Site;
        cls.key = assembler_.string(module_keys::kClass);
        cls.string = assembler_.string(name);
        std::vector<Argument> items(3);
        items[0].kind = ValueKind::String;
        items[0].string = 0;
        items[1] = array(parameter);
        Argument list;
        list.kind = ValueKind::List;
        list.role = ArgumentRole::Site;
        list.key = assembler_.string(module_keys::kParameter);
        list.list = assembler_.add_list(items);
        assembler_.add_values(range, std::vector<Argument>{cls, list});
        return wait();
    }
    MemoryProfile profile() { return MemoryProfile(assembler_.finish()); }

  private:
    struct Open {
        std::int64_t start;
        std::string name;
        std::vector<Array> inputs;
        Scope scope;
    };

    Argument array(const Array& spec) {
        ArrayInfo info;
        info.dtype = DType::Float32;
        info.object = spec.object;
        info.storage = spec.storage;
        info.access = spec.access;
        info.has_strides = true;
        info.dimensions = 1;
        Argument value;
        value.kind = ValueKind::Array;
        value.role = ArgumentRole::Input;
        value.array = assembler_.add_array(info, std::vector<std::int64_t>{spec.elements, 1});
        return value;
    }
    TrainingProgram& at(std::int64_t start, std::int64_t duration, const std::string& name,
                        const std::vector<Array>& inputs, Scope scope) {
        const auto range = assembler_.add_range(
            lane_, start, duration, assembler_.site({.name = assembler_.string(name), .scope = scope}));
        for (const Array& input : inputs) assembler_.add_values(range, std::vector<Argument>{array(input)});
        return *this;
    }
    TrainingProgram& wait() {
        time_ += 10;
        return *this;
    }

    TraceAssembler assembler_;
    std::uint32_t lane_;
    std::int64_t time_ = 10;
    std::vector<Open> open_;
};

std::vector<std::uint32_t> arrays_of(const std::vector<ArrayId>& ids) {
    std::vector<std::uint32_t> numbers;
    for (const ArrayId& id : ids) numbers.push_back(id.array);
    return numbers;
}
std::vector<std::uint32_t> allocations_of(const std::vector<ArrayId>& ids) {
    std::vector<std::uint32_t> numbers;
    for (const ArrayId& id : ids) numbers.push_back(id.allocation);
    return numbers;
}
using Numbers = std::vector<std::uint32_t>;

TEST(ArrayIds, AReusedAddressIsANewAllocationAndANewArray) {
    const MemoryProfile profile = TrainingProgram()
                                      .take(0x100)
                                      .op("aten::a", {{1, 0x100}, {2, 0x100}})
                                      .deallocate(0x100)
                                      .take(0x100)
                                      .op("aten::b", {{3, 0x100}})
                                      .profile();
    EXPECT_EQ(allocations_of(profile.ids().arrays), (Numbers{1, 1, 2}));
    EXPECT_EQ(arrays_of(profile.ids().arrays), (Numbers{0, 0, 1}));
    EXPECT_EQ(arrays_of(profile.ids().reports), (Numbers{0, 0, 1}));
}

TEST(ArrayIds, AnArrayWhoseMemoryIsExchangedStaysTheSameArray) {
    // The third array has the memory of the second, then that of the first: all are the same array.
    const MemoryProfile profile = TrainingProgram()
                                      .op("aten::a", {{1, 0x100}, {2, 0x200}, {3, 0x200}})
                                      .op("aten::b", {{3, 0x100}, {4, 0x300}})
                                      .profile();
    EXPECT_EQ(allocations_of(profile.ids().arrays), (Numbers{1, 2, 2, 1, 3}));
    EXPECT_EQ(arrays_of(profile.ids().arrays), (Numbers{0, 0, 0, 0, 1}));
}

TEST(ArrayIds, MemoryWithoutArraysAndArraysWithoutMemoryOrObjectHaveNoIds) {
    const MemoryProfile profile = TrainingProgram()
                                      .take(0x500)
                                      .op("aten::a", {{1, 0x100}, {2, 0}, {0, 0x300}})
                                      .deallocate(0x500)
                                      .profile();
    EXPECT_EQ(arrays_of(profile.ids().arrays), (Numbers{0, kNoRow, kNoRow}));
    EXPECT_EQ(allocations_of(profile.ids().arrays), (Numbers{2, 0, 0}));
    EXPECT_EQ(arrays_of(profile.ids().reports), (Numbers{kNoRow, kNoRow}));
    EXPECT_EQ(allocations_of(profile.ids().reports), (Numbers{1, 1}));
}

TEST(ArrayIds, AnAllocationIsNewEvenIfTheOldOneWasNotFreed) {
    const MemoryProfile profile = TrainingProgram()
                                      .take(0x100)
                                      .op("aten::a", {{1, 0x100}})
                                      .take(0x100)
                                      .op("aten::b", {{2, 0x100}})
                                      .profile();
    EXPECT_EQ(arrays_of(profile.ids().arrays), (Numbers{0, 1}));
    const auto timeline = profile.timeline();
    ASSERT_EQ(timeline.size(), 3u);
    EXPECT_EQ(timeline[1].action, MemoryAction::Create);
    EXPECT_EQ(timeline[2].action, MemoryAction::Destroy);
    EXPECT_EQ(timeline[2].allocation, 1u);
    EXPECT_EQ(timeline[1].time_ns, timeline[2].time_ns);
}

TEST(MemoryFlow, StepsAreTheOutermostOperatorsAndEveryWriteMakesAVersion) {
    const MemoryProfile profile = TrainingProgram()
                                      .begin("user range", {}, Scope::User)
                                      .begin("aten::ones", {})
                                      .take(0x100)
                                      .op("aten::fill_", {{1, 0x100, kWrite}})
                                      .end()
                                      .op("aten::add_", {{1, 0x100, kWrite}, {2, 0x200}})
                                      .op("opaque", {{1, 0x100, ArrayAccess::Unknown}})
                                      .end()
                                      .deallocate(0x100)
                                      .profile();
    const auto nodes = profile.nodes();
    ASSERT_EQ(nodes.size(), 3u);
    ASSERT_EQ(nodes[0].edges.size(), 1u);
    EXPECT_TRUE(nodes[0].edges[0].is_output() && !nodes[0].edges[0].is_input());
    EXPECT_EQ(nodes[0].edges[0].output_version(), 0u);
    ASSERT_EQ(nodes[1].edges.size(), 2u);
    EXPECT_TRUE(nodes[1].edges[0].is_written && !nodes[1].edges[1].is_written);
    EXPECT_EQ(nodes[1].edges[0].output_version(), 1u);
    EXPECT_TRUE(nodes[2].edges[0].is_freed);
    EXPECT_EQ(nodes[2].edges[0].version, 1u);
    EXPECT_EQ(profile.blocks()[1].versions, 2u);
}

TEST(MemoryFlow, MemoryThatDoesNotOutliveItsStepIsTemporary) {
    const MemoryProfile profile = TrainingProgram()
                                      .begin("aten::std", {{1, 0x100}})
                                      .take(0x200)
                                      .op("aten::mul", {{2, 0x200, ArrayAccess::Unknown}})
                                      .deallocate(0x200)
                                      .end()
                                      .profile();
    ASSERT_EQ(profile.nodes().size(), 1u);
    EXPECT_EQ(profile.category(2, 0), MemoryCategory::Temporary);
    EXPECT_EQ(profile.category(1, 0), MemoryCategory::Unknown);
}

TEST(MemoryFlow, OperatorsAreRecognizedByTheirNames) {
    for (const char* const name : {"aten::add", "c10d::allreduce_", "my_library::f.out"})
        EXPECT_TRUE(is_operator_name(name)) << name;
    for (const char* const name :
         {"", "add", "::add", "aten::", "autograd::engine::evaluate_function: X", "std::vector<int>::at"})
        EXPECT_FALSE(is_operator_name(name)) << name;
}

/// Weights 1 and inputs 2 give 3, whose gradient is 4: a training step without modules.
TrainingProgram& training(TrainingProgram& program) {
    program.begin("aten::mm", {{1, 0x100}, {2, 0x200}})
        .take(0x300)
        .op("aten::resolve_conj", {{3, 0x300}})
        .end();
    program.begin("MmBackward0", {{3, 0x300}}, Scope::BackwardFunction)
        .take(0x400)
        .op("aten::mm", {{3, 0x300}, {4, 0x400}})
        .take(0x500)
        .op("aten::t", {{5, 0x500}})
        .end();
    return program.begin("torch::autograd::AccumulateGrad", {{4, 0x400}}, Scope::BackwardFunction)
        .op("aten::detach", {{4, 0x400}})
        .end();
}

MemoryCategory category_at(const MemoryProfile& profile, std::uint64_t address, std::uint32_t version = 0) {
    for (std::uint32_t i = 1; i < profile.blocks().size(); ++i) {
        if (profile.blocks()[i].address == address) return profile.category(i, version);
    }
    return MemoryCategory::Unknown;
}

TEST(MemoryCategories, OfATrainingStepFollowFromGradientsAndParameters) {
    const MemoryProfile profile = training(TrainingProgram().module("Linear", {1, 0x100}))
                                      .op("aten::add_", {{1, 0x100, kWrite}, {4, 0x400}})
                                      .profile();
    EXPECT_EQ(category_at(profile, 0x100), MemoryCategory::Parameter);
    EXPECT_EQ(category_at(profile, 0x100, 1), MemoryCategory::Parameter);
    EXPECT_EQ(category_at(profile, 0x200), MemoryCategory::Input);
    EXPECT_EQ(category_at(profile, 0x300), MemoryCategory::Activation);
    EXPECT_EQ(category_at(profile, 0x400), MemoryCategory::Gradient);
    EXPECT_EQ(category_at(profile, 0x500), MemoryCategory::AutogradDetail);
}

TEST(MemoryCategories, ParametersAreFoundByDataFlowWithoutModules) {
    TrainingProgram program;
    const MemoryProfile profile =
        training(program).op("aten::add_", {{1, 0x100, kWrite}, {4, 0x400}}).profile();
    EXPECT_EQ(category_at(profile, 0x100), MemoryCategory::Parameter);
    EXPECT_EQ(category_at(profile, 0x200), MemoryCategory::Input);
    // Without the update, parameters cannot be distinguished from inputs.
    TrainingProgram without_update;
    EXPECT_EQ(category_at(training(without_update).profile(), 0x100), MemoryCategory::Input);
}

TEST(MemoryCategories, HaveNames) {
    EXPECT_STREQ(memory_category_name(MemoryCategory::OptimizerState), "optimizer state");
    EXPECT_STREQ(memory_category_name(static_cast<MemoryCategory>(99)), "unknown");
}

TEST(MemoryTimelines, StartWithEarlierMemoryAndListVersionsWithBothCategories) {
    const MemoryProfile profile = TrainingProgram()
                                      .module("Linear", {1, 0x100})
                                      .op("aten::add_", {{1, 0x100, kWrite, 8}})
                                      .deallocate(0x900, 5)
                                      .profile();
    const auto timeline = profile.timeline();
    ASSERT_EQ(timeline.size(), 4u);
    EXPECT_EQ(timeline[0].time_ns, MemoryEvent::kBefore);
    EXPECT_EQ(timeline[0].bytes + timeline[1].bytes, 32 + 5);
    EXPECT_EQ(timeline[2].action, MemoryAction::IncrementVersion);
    EXPECT_EQ(timeline[2].category, MemoryCategory::Parameter);
    EXPECT_EQ(timeline[2].next_category, MemoryCategory::Parameter);
    EXPECT_EQ(timeline[3].action, MemoryAction::Destroy);
    EXPECT_EQ(timeline[3].allocation, 0u);
}

}  // namespace
}  // namespace marey
