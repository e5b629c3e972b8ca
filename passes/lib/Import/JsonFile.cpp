//===- JsonFile.cpp - Objects of a JSON file, with their faults named ---------------------===//
#include "JsonFile.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::ncclx::msccl;
using llvm::json::Object;

/// Nesting beyond this is refused before parsing: llvm::json recurses.
static constexpr unsigned kMaxDepth = 32;

void JsonFile::findLines() {
  struct Level {
    bool array;
    std::string path; ///< of what is in it, without the index
    int64_t index;
  };
  std::vector<Level> levels;
  std::string last;
  unsigned line = 1;
  size_t lineStart = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '\n') {
      ++line;
      lineStart = i + 1;
    } else if (c == '"') {
      size_t start = i + 1;
      for (++i; i < text.size() && text[i] != '"'; ++i)
        i += text[i] == '\\';
      last = text.slice(start, std::min(i, text.size())).str();
    } else if (c == '{' || c == '[') {
      std::string path;
      if (!levels.empty()) {
        Level &in = levels.back();
        path = in.array ? in.path + "[" + std::to_string(in.index) + "]"
                        : in.path + (in.path.empty() ? "" : ".") + last;
        if (in.array && c == '{')
          starts[path] = {line, unsigned(i - lineStart) + 1};
      }
      levels.push_back({c == '[', path, 0});
      if (levels.size() > kMaxDepth) {
        tooDeep = {line, unsigned(i - lineStart) + 1};
        return;
      }
    } else if (c == '}' || c == ']') {
      if (!levels.empty())
        levels.pop_back();
    } else if (c == ',' && !levels.empty()) {
      ++levels.back().index;
    }
  }
}

std::optional<JsonFile::Node> JsonFile::parse() {
  LocationAttr loc = FileLineColLoc::get(theContext, file, 1, 1);
  if (tooDeep) {
    error(FileLineColLoc::get(theContext, file, tooDeep->first, tooDeep->second))
        << "nests deeper than " << kMaxDepth << " levels";
    return std::nullopt;
  }
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(text);
  if (!parsed) {
    error(loc) << "is not JSON: " << llvm::toString(parsed.takeError());
    return std::nullopt;
  }
  root = std::move(*parsed);
  static const Object nothing;
  const Object *object = root->getAsObject();
  return Node{object ? object : &nothing, "", loc};
}

std::string JsonFile::show(const llvm::json::Value *value) {
  if (!value)
    return "nothing";
  std::string text;
  llvm::raw_string_ostream(text) << *value;
  return text.size() > 40 ? text.substr(0, 40) + "..." : text;
}

int64_t JsonFile::number(const Node &node, StringRef key, std::optional<int64_t> ifMissing,
                         int64_t least, int64_t most) {
  const llvm::json::Value *value = node.get(key);
  if (!value) {
    if (ifMissing)
      emitWarning(node.loc) << node.name() << " has no '" << key << "', taken as " << *ifMissing;
    else
      error(node) << "has no '" << key << "'";
    return ifMissing.value_or(least);
  }
  std::optional<int64_t> found = value->getAsInteger();
  if (!found || *found < least || *found > most) {
    error(node) << "'" << key << "' is " << show(value) << ", expected a whole number from "
                << least << " to " << most;
    return least;
  }
  return *found;
}

std::string JsonFile::word(const Node &node, StringRef key, std::optional<StringRef> ifMissing) {
  const llvm::json::Value *value = node.get(key);
  if (!value && ifMissing) {
    emitWarning(node.loc) << node.name() << " has no '" << key << "', taken as '" << *ifMissing
                          << "'";
    return ifMissing->str();
  }
  std::optional<StringRef> found = value ? value->getAsString() : std::nullopt;
  if (!found)
    error(node) << "'" << key << "' is " << show(value) << ", expected a text";
  return found.value_or("").str();
}

bool JsonFile::flag(const Node &node, StringRef key, bool ifMissing) {
  const llvm::json::Value *value = node.get(key);
  if (!value) {
    emitWarning(node.loc) << "the plan has no '" << key << "', taken as "
                          << (ifMissing ? "true" : "false");
    return ifMissing;
  }
  if (std::optional<bool> found = value->getAsBoolean())
    return *found;
  error(node) << "'" << key << "' is " << show(value) << ", expected true or false";
  return ifMissing;
}

std::vector<JsonFile::Node> JsonFile::objects(const Node &node, StringRef key, bool required) {
  const llvm::json::Value *value = node.get(key);
  std::vector<Node> found;
  const llvm::json::Array *list = value ? value->getAsArray() : nullptr;
  if (value ? !list : required)
    error(node) << "'" << key << "' is " << show(value) << ", expected a list of objects";
  if (!list)
    return found;
  for (size_t i = 0; i < list->size(); ++i) {
    std::string path =
        llvm::formatv("{0}{1}{2}[{3}]", node.path, node.path.empty() ? "" : ".", key, i);
    if (const Object *object = (*list)[i].getAsObject())
      found.push_back({object, path, at(path)});
    else
      error(node) << key << "[" << i << "] is " << show(&(*list)[i]) << ", expected an object";
  }
  return found;
}

std::vector<int64_t> JsonFile::numbers(const Node &node, StringRef key, bool required,
                                       int64_t most) {
  const llvm::json::Value *value = node.get(key);
  const llvm::json::Array *list = value ? value->getAsArray() : nullptr;
  if (value ? !list : required)
    error(node) << "'" << key << "' is " << show(value) << ", expected a list of numbers";
  std::vector<int64_t> found;
  if (!list)
    return found;
  for (const llvm::json::Value &each : *list) {
    std::optional<int64_t> number = each.getAsInteger();
    if (number && *number >= 0 && *number <= most)
      found.push_back(*number);
    else
      error(node) << "'" << key << "' has " << show(&each) << ", expected whole numbers from 0 to "
                  << most;
  }
  return found;
}

void JsonFile::known(const Node &node, ArrayRef<StringRef> keys, bool strict) {
  std::vector<std::string> others;
  for (const auto &entry : *node.object)
    if (!llvm::is_contained(keys, entry.first.str()))
      others.push_back(entry.first.str());
  llvm::sort(others);
  for (const std::string &other : others)
    if (strict)
      error(node) << "'" << other << "' is not understood here";
    else
      warnOnce(node.loc, llvm::formatv("'{0}' is not known here, and is left out", other));
}
