//===- ReadHlo.cpp - HLO text to plain data, or one fault with its place ---------------===//
#include "HloModule.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::ncclx::hlo;

std::optional<StringRef> Instruction::find(StringRef attribute) const {
  for (const auto &[name, value] : attributes)
    if (name == attribute)
      return value;
  return std::nullopt;
}

const Computation *Module::find(StringRef name) const {
  auto it = byName.find(name);
  return it == byName.end() ? nullptr : &computations[it->second];
}

int64_t Shape::elements() const {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= dim;
  return count;
}

int64_t Shape::bytes() const {
  if (!tuple)
    return array() ? int64_t(llvm::divideCeil(uint64_t(elements()) * element.bits, 8)) : 0;
  int64_t sum = 0;
  for (const Shape &part : parts)
    sum += part.bytes();
  return sum;
}

unsigned Shape::leaves() const {
  if (!tuple)
    return array();
  unsigned sum = 0;
  for (const Shape &part : parts)
    sum += part.leaves();
  return sum;
}

std::optional<SmallVector<int64_t>> mlir::ncclx::hlo::readNumbers(StringRef text) {
  text = text.trim();
  if (text.consume_front("{") && !text.consume_back("}"))
    return std::nullopt;
  SmallVector<int64_t> numbers;
  if (text.trim().empty())
    return numbers;
  while (true) {
    auto [first, rest] = text.split(',');
    int64_t number;
    if (first.trim().getAsInteger(10, number))
      return std::nullopt;
    numbers.push_back(number);
    if (first.size() == text.size())
      return numbers;
    text = rest;
  }
}

SmallVector<StringRef> mlir::ncclx::hlo::readNames(StringRef text) {
  text = text.trim();
  if (text.consume_front("{"))
    text.consume_back("}");
  SmallVector<StringRef> names;
  text.split(names, ',', -1, /*KeepEmpty=*/false);
  for (StringRef &name : names) {
    name = name.trim();
    name.consume_front("%");
  }
  return names;
}

/// The element types of XLA's `primitive_util`; bits of a Token are 0.
static std::optional<Element> elementOf(StringRef name) {
  using E = Element;
  auto known = llvm::StringSwitch<std::pair<int, unsigned>>(name)
                   .Case("pred", {E::Predicate, 8})
                   .Cases({"s2", "s4", "s8", "s16", "s32", "s64"}, {E::Signed, 0})
                   .Cases({"u2", "u4", "u8", "u16", "u32", "u64"}, {E::Unsigned, 0})
                   .Cases({"f16", "f32", "f64"}, {E::Float, 0})
                   .Case("bf16", {E::Float, 16})
                   .Cases({"f8e5m2", "f8e4m3", "f8e4m3fn", "f8e4m3b11fnuz"}, {E::Float, 8})
                   .Cases({"f8e3m4", "f8e4m3fnuz", "f8e5m2fnuz", "f8e8m0fnu"}, {E::Float, 8})
                   .Case("f4e2m1fn", {E::Float, 4})
                   .Case("c64", {E::Complex, 64})
                   .Case("c128", {E::Complex, 128})
                   .Cases({"token", "opaque"}, {E::Token, 0})
                   .Default({-1, 0});
  if (known.first < 0)
    return std::nullopt;
  Element element{E::Kind(known.first), known.second, name};
  if (element.bits == 0 && element.kind != E::Token)
    name.drop_front().getAsInteger(10, element.bits);
  return element;
}

namespace {

class Reader {
public:
  Reader(StringRef text, Fault &fault) : text(text), fault(fault) {}
  std::optional<Module> run();

private:
  static constexpr unsigned kDeepest = 100;          ///< tuples in tuples
  static constexpr int64_t kMost = int64_t(1) << 55; ///< elements, so that bits are countable

  StringRef text;
  Fault &fault;
  size_t at = 0;
  Module module;

  bool fail(size_t offset, const std::string &what) {
    if (fault.what.empty())
      fault = {offset, what};
    return false;
  }
  bool fail(const std::string &what) { return fail(at, what); }
  std::string found() const {
    if (at >= text.size())
      return "the end of the text";
    StringRef word = text.substr(at).take_while([](char c) { return llvm::isAlnum(c); });
    std::string shown;
    llvm::raw_string_ostream os(shown);
    llvm::printEscapedString(word.empty() ? text.substr(at, 1) : word.take_front(40), os);
    return "'" + shown + "'";
  }

  /// Spaces, and comments of both kinds.
  void skip() {
    while (at < text.size()) {
      if (llvm::isSpace(text[at]))
        ++at;
      else if (text.substr(at).starts_with("/*"))
        at =
            std::min(text.size(), text.find("*/", at) == StringRef::npos ? text.size()
                                                                         : text.find("*/", at) + 2);
      else if (text.substr(at).starts_with("//"))
        at = std::min(text.size(), text.find('\n', at));
      else
        return;
    }
  }
  bool peek(StringRef token) {
    skip();
    return text.substr(at).starts_with(token);
  }
  bool accept(StringRef token) {
    if (!peek(token))
      return false;
    at += token.size();
    return true;
  }
  bool expect(StringRef token, StringRef where) {
    return accept(token) ||
           fail(llvm::formatv("expected '{0}' {1}, found {2}", token, where, found()));
  }
  static bool inName(char c) { return llvm::isAlnum(c) || c == '_' || c == '.' || c == '-'; }
  StringRef word() {
    skip();
    StringRef name = text.substr(at).take_while(inName);
    at += name.size();
    return name;
  }
  bool name(StringRef &result, StringRef what) {
    accept("%");
    result = word();
    return !result.empty() || fail(llvm::formatv("expected {0}, found {1}", what, found()));
  }
  /// The bracketed text that starts here, with what stands in it.
  bool balanced(StringRef &result);
  bool quoted();
  bool value(StringRef &result);
  bool shape(Shape &result, unsigned depth = 0);
  bool attributes(llvm::SmallVectorImpl<std::pair<StringRef, StringRef>> &list);
  bool operands(Instruction &instruction, const llvm::StringMap<unsigned> &names);
  bool instruction(Computation &computation, llvm::StringMap<unsigned> &names,
                   std::optional<unsigned> &root);
  bool computation(bool entry);
  bool header();
};

bool Reader::quoted() {
  size_t start = at++;
  while (at < text.size() && text[at] != '"')
    at += text[at] == '\\' ? 2 : 1;
  if (at >= text.size())
    return fail(start, "this text in quotes does not end");
  ++at;
  return true;
}

bool Reader::balanced(StringRef &result) {
  size_t start = at;
  SmallVector<std::pair<char, size_t>> open;
  do {
    if (at >= text.size())
      return fail(open.empty() ? start : open.back().second, "this bracket is not closed");
    char c = text[at];
    if (c == '"') {
      if (!quoted())
        return false;
      continue;
    }
    if (c == '(' || c == '[' || c == '{')
      open.push_back({c == '(' ? ')' : c == '[' ? ']' : '}', at});
    else if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back().first != c)
        return fail(llvm::formatv("'{0}' closes no bracket", c));
      open.pop_back();
    }
    ++at;
  } while (!open.empty());
  result = text.slice(start, at);
  return true;
}

/// An attribute's value: up to a comma, a line end, or the bracket that closes what it stands in.
bool Reader::value(StringRef &result) {
  skip();
  size_t start = at;
  while (at < text.size() && text[at] != ',' && text[at] != '\n') {
    char c = text[at];
    StringRef part;
    if (c == ')' || c == ']' || c == '}')
      break;
    if (c == '"' ? !quoted() : (c == '(' || c == '[' || c == '{') && !balanced(part))
      return false;
    if (c != '"' && part.empty())
      ++at;
  }
  result = text.slice(start, at).rtrim();
  return !result.empty() || fail("expected a value, found " + found());
}

bool Reader::shape(Shape &result, unsigned depth) {
  if (depth > kDeepest)
    return fail(llvm::formatv("tuples stand in each other more than {0} deep", kDeepest));
  if (accept("(")) {
    result.tuple = true;
    if (accept(")"))
      return true;
    do {
      result.parts.emplace_back();
      if (!shape(result.parts.back(), depth + 1))
        return false;
    } while (accept(","));
    return expect(")", "behind a tuple's shapes");
  }
  skip();
  size_t start = at;
  StringRef type = text.substr(at).take_while([](char c) { return llvm::isAlnum(c); });
  std::optional<Element> element = elementOf(type);
  if (!element)
    return fail(type.empty() ? "expected a shape, found " + found()
                             : ("'" + type.take_front(40) + "' is no element type").str());
  at += type.size();
  result.element = *element;
  if (!expect("[", "behind an element type"))
    return false;
  int64_t count = 1;
  if (!accept("]")) {
    do {
      skip();
      size_t place = at;
      if (peek("<") || peek("?"))
        return fail("sizes known at run time are not taken");
      StringRef digits = text.substr(at).take_while(llvm::isDigit);
      int64_t dim;
      if (digits.getAsInteger(10, dim))
        return fail("expected a size, found " + found());
      at += digits.size();
      result.dims.push_back(dim);
      if (__builtin_mul_overflow(count, std::max<int64_t>(dim, 1), &count) || count > kMost)
        return fail(place, llvm::formatv("a shape has more than {0} elements", kMost));
    } while (accept(","));
    if (!expect("]", "behind the sizes"))
      return false;
  }
  if (element->kind == Element::Token && !result.dims.empty())
    return fail(start, llvm::formatv("a {0} has no sizes", type));
  StringRef layout;
  if (at >= text.size() || text[at] != '{') // a computation's brace stands behind a space
    return true;
  if (!balanced(layout))
    return false;
  std::optional<SmallVector<int64_t>> order =
      readNumbers(layout.drop_front().take_until([](char c) { return c == ':' || c == '}'; }));
  result.rowMajor = order && llvm::is_sorted(*order, std::greater<int64_t>());
  return true;
}

bool Reader::attributes(llvm::SmallVectorImpl<std::pair<StringRef, StringRef>> &list) {
  while (accept(",")) {
    auto &[name, text] = list.emplace_back();
    name = word();
    if (name.empty())
      return fail("expected an attribute, found " + found());
    if (!expect("=", "behind an attribute's name") || !value(text))
      return false;
  }
  return true;
}

bool Reader::operands(Instruction &op, const llvm::StringMap<unsigned> &names) {
  if (op.is("constant") || op.is("parameter") || op.is("iota")) {
    if (!peek("("))
      return fail("expected '(' behind the opcode, found " + found());
    if (!balanced(op.literal))
      return false;
    op.literal = op.literal.drop_front().drop_back().trim();
    return true;
  }
  if (!expect("(", "behind the opcode"))
    return false;
  if (accept(")"))
    return true;
  do {
    skip();
    size_t start = at;
    // The long form has the operand's shape in front of its name.
    StringRef first = word();
    if (first.empty() || (at < text.size() && text[at] == '[')) {
      at = start;
      Shape ignored;
      if (!peek("%") && !shape(ignored))
        return false;
      skip();
      start = at;
      if (!name(first, "an operand"))
        return false;
    }
    auto it = names.find(first);
    if (it == names.end())
      return fail(start, ("operand '" + first.take_front(80) + "' is not defined before").str());
    op.operands.push_back(it->second);
  } while (accept(","));
  return expect(")", "behind the operands");
}

bool Reader::instruction(Computation &computation, llvm::StringMap<unsigned> &names,
                         std::optional<unsigned> &root) {
  unsigned number = computation.instructions.size();
  skip();
  size_t start = at;
  StringRef first = word();
  if (first == "ROOT" && !peek("=")) {
    if (root)
      return fail(start, ("computation '" + computation.name + "' has two roots").str());
    root = number;
    skip();
  } else {
    at = start;
  }
  Instruction op;
  op.offset = at;
  if (!name(op.name, "an instruction's name"))
    return false;
  if (!names.insert({op.name, number}).second)
    return fail(op.offset, ("'" + op.name.take_front(80) + "' is defined twice").str());
  if (!expect("=", "behind an instruction's name") || !shape(op.shape))
    return false;
  op.opcode = word();
  if (op.opcode.empty())
    return fail("expected an opcode, found " + found());
  names.erase(op.name); // not an operand of itself
  if (!operands(op, names) || !attributes(op.attributes))
    return false;
  names.insert({op.name, number});
  if (op.is("parameter")) {
    int64_t position;
    if (op.literal.getAsInteger(10, position) || position < 0 || position > (1 << 20))
      return fail(op.offset, "a parameter has a number from 0 on");
    if (computation.parameters.size() <= size_t(position))
      computation.parameters.resize(position + 1, ~0u);
    if (computation.parameters[position] != ~0u)
      return fail(op.offset, llvm::formatv("parameter {0} is there twice", position));
    computation.parameters[position] = number;
  }
  computation.instructions.push_back(std::move(op));
  return true;
}

bool Reader::computation(bool entry) {
  Computation computation;
  skip();
  computation.offset = at;
  if (!name(computation.name, "a computation"))
    return false;
  if (peek("(")) { // its type: said again by the instructions
    StringRef parameters;
    Shape result;
    if (!balanced(parameters) || !expect("->", "behind the parameters") || !shape(result))
      return false;
  }
  if (!expect("{", "in front of the instructions"))
    return false;
  llvm::StringMap<unsigned> names;
  std::optional<unsigned> root;
  while (!accept("}"))
    if (!instruction(computation, names, root))
      return false;
  SmallVector<std::pair<StringRef, StringRef>> ignored;
  if (!attributes(ignored))
    return false;
  if (computation.instructions.empty())
    return fail(computation.offset, ("computation '" + computation.name + "' is empty").str());
  computation.root = root.value_or(computation.instructions.size() - 1);
  for (auto [i, parameter] : llvm::enumerate(computation.parameters))
    if (parameter == ~0u)
      return fail(computation.offset,
                  llvm::formatv("computation '{0}' has no parameter {1}", computation.name, i));
  unsigned number = module.computations.size();
  if (!module.byName.insert({computation.name, number}).second)
    return fail(computation.offset,
                ("computation '" + computation.name + "' is defined twice").str());
  if (entry)
    module.entry = number;
  module.computations.push_back(std::move(computation));
  return true;
}

bool Reader::header() {
  skip();
  if (word() != "HloModule")
    return fail(0, "expected 'HloModule'");
  if (!name(module.name, "the module's name"))
    return false;
  SmallVector<std::pair<StringRef, StringRef>> list;
  if (!attributes(list))
    return false;
  for (auto [name, text] : list) {
    if (name != "replica_count" && name != "num_partitions")
      continue;
    int64_t &count = name == "replica_count" ? module.replicas : module.partitions;
    if (text.getAsInteger(10, count) || count < 1 || count > (1 << 24))
      return fail(text.data() - this->text.data(),
                  llvm::formatv("{0} is a number from 1 to {1}", name, 1 << 24));
  }
  return true;
}

std::optional<Module> Reader::run() {
  if (!header())
    return std::nullopt;
  bool hasEntry = false;
  for (skip(); at < text.size(); skip()) {
    // Tables of source places that newer dumps have: a title, then a line for each entry.
    size_t start = at;
    StringRef first = word();
    if (first == "FileNames" || first == "FunctionNames" || first == "FileLocations" ||
        first == "StackFrames") {
      for (skip(); at < text.size() && llvm::isDigit(text[at]); skip())
        at = std::min(text.size(), text.find('\n', at));
      continue;
    }
    bool entry = first == "ENTRY";
    if (entry && hasEntry) {
      fail(start, "a module has one ENTRY");
      return std::nullopt;
    }
    hasEntry |= entry;
    if (!entry)
      at = start;
    if (!computation(entry))
      return std::nullopt;
  }
  if (!hasEntry) {
    fail("expected an ENTRY computation, found the end of the text");
    return std::nullopt;
  }
  return std::move(module);
}

} // namespace

std::optional<Module> mlir::ncclx::hlo::read(StringRef text, Fault &fault) {
  return Reader(text, fault).run();
}
