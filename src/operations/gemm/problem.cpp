#include "operations/gemm/problem.h"

#include <array>

namespace omniconv {
namespace {

using text::ExactWord;
using text::LetterGroup;

constexpr std::array<Field<GemmProblem>, 4> gemm_fields{{
    {"m", "m", &GemmProblem::m, 1},
    {"n", "n", &GemmProblem::n, 1},
    {"k", "k", &GemmProblem::k, 1},
    {"batch", "batch", &GemmProblem::batch, 1},
}};

using G = GemmProblem;
constexpr std::array<LetterGroup<G>, 4> gemm_letters{{
    {"m", "rows of the product", 0, true, {&G::m}},
    {"n", "columns of the product", 0, true, {&G::n}},
    {"k", "length of the sums", 0, true, {&G::k}},
    {"batch", "batch size", 0, false, {&G::batch}},
}};

constexpr std::array<ExactWord<G>, 9> gemm_words{{
    {"f32", "type", [](G& p) { p.type = DataType::f32; }},
    {"f64", "type", [](G& p) { p.type = DataType::f64; }},
    {"f16", "type", [](G& p) { p.type = DataType::f16; }},
    {"bf16", "type", [](G& p) { p.type = DataType::bf16; }},
    {"tf32", "type", [](G& p) { p.type = DataType::tf32; }},
    {"nn", "transposition", [](G&) {}},
    {"nt", "transposition", [](G& p) { p.transpose_b = true; }},
    {"tn", "transposition", [](G& p) { p.transpose_a = true; }},
    {"tt", "transposition", [](G& p) { p.transpose_a = p.transpose_b = true; }},
}};

}  // namespace

std::optional<BrokenRule> first_broken_rule(const GemmProblem& problem) {
  if (auto broken = network_type_rule(problem.type)) return broken;
  if (auto broken = extent_rule<GemmProblem>(problem, gemm_fields)) return broken;
  const Extent batch{"batch", "batch", problem.batch};
  const Extent m{"m", "m", problem.m}, n{"n", "n", problem.n}, k{"k", "k", problem.k};
  const std::int64_t bytes = size_of(problem.type);
  if (auto broken = array_rule("a", {batch, m, k}, bytes)) return broken;
  if (auto broken = array_rule("b", {batch, k, n}, bytes)) return broken;
  if (auto broken = array_rule("c", {batch, m, n}, bytes)) return broken;
  return name_rule(problem.name);
}

std::string print(const GemmProblem& p) {
  const char operands[] = {p.transpose_a ? 't' : 'n', p.transpose_b ? 't' : 'n'};
  return text::join_words({"gemm", name(p.type), std::string_view(operands, 2), fmt::format("m{}n{}k{}", p.m, p.n, p.k),
                           text::unless(p.batch, 1, "batch"), text::in_quotes(p.name)});
}

bool GemmProblem::operator==(const GemmProblem& other) const {
  for (const auto& field : gemm_fields)
    if (this->*field.member != other.*field.member) return false;
  return type == other.type && transpose_a == other.transpose_a && transpose_b == other.transpose_b;
}

const text::Notation<GemmProblem>& operations::gemm_notation() {
  static constexpr text::Notation<GemmProblem> notation{"gemm", gemm_words, gemm_letters};
  return notation;
}

}  // namespace omniconv
