//===- GraphText.h - Writing graphs as text ------------------------*- C++ -*-===//
#ifndef NCCLX_TEST_UNIT_EQUIVALENCE_GRAPHTEXT_H
#define NCCLX_TEST_UNIT_EQUIVALENCE_GRAPHTEXT_H

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace equivalence {

using Shape = std::vector<int64_t>;
/// Who meets: axes of a grid, or groups of ranks.
struct Axes : std::vector<std::string> {
  using vector::vector;
  std::vector<Shape> groups = {};
  std::string grid = "g";
};
using Grid = std::vector<std::pair<std::string, int64_t>>;

inline int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// The rows of `dim` behind a member's share of `extent` are unspecified.
struct Padding {
  int64_t dim = 0, extent = 0;
  Axes axes;
};

struct Tensor {
  std::string name;
  Shape shape;
  std::string element;
  std::optional<Padding> padding;
  int64_t number = 0;    ///< of what a collective gives: members
  bool isFuture = false; ///< of this tensor

  int64_t count() const;
  std::string type() const;
  /// The future's, where it is one.
  std::string valueType() const;
};

/// Builds `func.func @f` line by line; each word gives the tensor that it makes.
class GraphText {
public:
  explicit GraphText(Grid grid) : grids{{"g", std::move(grid)}} {}
  /// Another grid of the same ranks.
  void addGrid(const std::string &name, Grid grid) { grids[name] = std::move(grid); }

  Tensor argument(Shape shape, const std::string &element, bool mayChange = false);
  /// The same on all ranks.
  Tensor uniformArgument(Shape shape, const std::string &element);
  Tensor empty(Shape shape, const std::string &element);

  // How the collectives that follow are written.
  std::string algorithm;      ///< "direct", "ring", ..., or empty: chosen
  std::optional<Tensor> into; ///< destination of the next collective alone
  bool async = false;         ///< the next collective is started: it gives its future
  std::string topology;       ///< the module's, or empty
  std::string pipeline;       ///< the hint: "chunks = 4, depth = 2", or empty
  std::string schedule;       ///< the written one that carries the next collective alone

  Tensor allGather(const Tensor &in, int64_t dim, int64_t extent, const Axes &axes);
  Tensor reduceScatter(const Tensor &in, int64_t dim, const std::string &reduction,
                       const Axes &axes);
  Tensor allReduce(const Tensor &in, const std::string &reduction, const Axes &axes);
  Tensor allToAll(const Tensor &in, int64_t split, int64_t concat, const Axes &axes);
  Tensor permute(const Tensor &in, const std::string &how, const Axes &axes);
  /// Rows from each member to each: counts[i][j].
  Tensor allToAllV(const Tensor &in, int64_t dim, const std::vector<Shape> &counts,
                   const Axes &axes);
  /// A number from 0 to `most` for each of n members, other ones in each run.
  Tensor sizes(int64_t n, int64_t most, const std::string &element);
  /// Rows to each member: as many as `sizes` say.
  Tensor allToAllSized(const Tensor &in, int64_t dim, const Tensor &sizes, const Axes &axes);
  // The root is a member's number.
  Tensor broadcast(const Tensor &in, int64_t root, const Axes &axes);
  Tensor reduce(const Tensor &in, int64_t root, const std::string &reduction, const Axes &axes);
  Tensor gather(const Tensor &in, int64_t dim, int64_t extent, int64_t root, const Axes &axes);
  Tensor scatter(const Tensor &in, int64_t dim, int64_t root, const Axes &axes);
  void barrier(const Axes &axes);
  /// A window of this shape, to be named by what follows; `peers` are "shift 1", "pairs [0 -> 1]"
  /// or none: the own one.
  Tensor window(Shape shape, const std::string &element, const Axes &axes,
                const std::optional<Tensor> &init = std::nullopt);
  void put(const Tensor &in, const Tensor &window, const Shape &offsets, const std::string &peers);
  Tensor get(const Tensor &window, const Shape &offsets, Shape shape,
             const std::string &peers = "");
  void signal(const Tensor &window, const std::string &peers);
  void wait(const Tensor &window, const std::string &peers, int64_t count = 1);
  Tensor await(const Tensor &future);
  Tensor chunk(const Tensor &future, int64_t i, int64_t dim);
  Tensor chunk(const Tensor &future, const std::string &i, int64_t dim);

  /// linalg.`what` of two tensors of one type, into `out` or a buffer of its own.
  Tensor elementwise(const std::string &what, const Tensor &a, const Tensor &b,
                     const std::optional<Tensor> &out = std::nullopt);
  Tensor matmul(const Tensor &a, const Tensor &b);
  Tensor slice(const Tensor &in, int64_t dim, int64_t begin, int64_t size);
  Tensor slice(const Tensor &in, int64_t dim, const std::string &begin, int64_t size);
  Tensor insert(const Tensor &in, const Tensor &whole, int64_t dim, int64_t begin);
  /// "%c": whether number i of `flags`, in one dimension, is above 0.
  std::string condition(const Tensor &flags, int64_t i);
  /// The same of number `i` modulo how many there are, an index.
  std::string condition(const Tensor &flags, const std::string &i);
  /// The same value, assumed to be the same on all ranks.
  std::string assumed(const std::string &value, const std::string &type);
  /// Number i of `flags`, folded into [0, most], an index.
  std::string count(const Tensor &flags, int64_t i, int64_t most);
  /// scf.if: what one of the two gives, of one type.
  Tensor branch(const std::string &condition, const std::function<Tensor()> &then,
                const std::function<Tensor()> &otherwise);
  using Carried = std::vector<Tensor>;
  /// scf.for with constant bounds: `body` gets the number and what is carried, tensors and futures,
  /// and gives what goes on.
  Carried loop(int64_t from, int64_t to, int64_t step, const Carried &carried,
               const std::function<Carried(const std::string &i, const Carried &)> &body);
  /// The same from 0 to `turns`, an index known at run time.
  Carried loop(const std::string &turns, const Carried &carried,
               const std::function<Carried(const std::string &i, const Carried &)> &body);
  /// scf.while: `body` gets and gives the same; before each turn `goesOn`, of the turn's number,
  /// says whether there is one. At most `turns`.
  Carried whileLoop(const std::string &turns, const Carried &carried,
                    const std::function<std::string(const std::string &i)> &goesOn,
                    const std::function<Carried(const std::string &i, const Carried &)> &body);
  /// Any other op: `words` behind "%name = ".
  Tensor op(const std::string &words, Shape shape, const std::string &element);

  void result(const Tensor &tensor) { results.push_back(tensor); }
  /// A function or anything else beside @f.
  void beside(const std::string &text) { others += text; }

  std::string str() const;
  int64_t ranks() const;
  int64_t groupSize(const Axes &axes) const; ///< of the largest
  /// Where a rank stands in its group.
  int64_t member(int64_t rank, const Axes &axes) const;
  const std::vector<Tensor> &outputs() const { return results; }
  /// May the argument's buffer be changed?
  bool isWritable(int64_t argument) const { return writable[argument]; }
  bool isUniform(int64_t argument) const { return uniform[argument]; }

private:
  std::map<std::string, Grid> grids;
  std::vector<std::string> arguments;
  std::vector<bool> writable, uniform; ///< by argument
  std::vector<Tensor> results;
  std::string body, others;
  int64_t names = 0;

  /// "@g["x"]" or "@g groups [[0, 1], [2]]"
  std::string over(const Axes &axes) const;
  /// " root [1, 0] "
  std::string rootWords(int64_t root, const Axes &axes) const;
  std::string fresh() { return "%v" + std::to_string(names++); }
  std::string index(int64_t i);
  void line(const std::string &text) { body += "  " + text + "\n"; }
  Carried loopOver(const std::string &bounds, const Carried &carried,
                   const std::function<Carried(const std::string &i, const Carried &)> &body);
  Tensor collective(const std::string &op, const std::string &words, const Tensor &in, Shape out,
                    const Axes &axes);
};

} // namespace equivalence
#endif // NCCLX_TEST_UNIT_EQUIVALENCE_GRAPHTEXT_H
