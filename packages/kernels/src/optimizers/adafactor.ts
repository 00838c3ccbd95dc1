import type { KernelView } from "@halfstep/device";
import { constant, type Term } from "../formula/term.js";
import { factoredPlaceWords } from "./factored-moments.js";
import { type PassInputs, type Terms, type UpdateRule, updateRule } from "./rule.js";
import { gatherTotals } from "./segment-gather.js";

/**
 * The estimate of an element's square from the factored moments (of `factoredMoments`): row share times column, or a separate
 * number for vectors.
 */
const inputs: PassInputs<"square"> = {
  bindings: [
    { name: "factored", access: "read", unit: 1, dtypes: ["float32"] },
    { name: "places", access: "read", dtypes: ["uint32"] },
  ],
  values: ["square"],
  wgsl: /* wgsl */ `let place = load_places(record.z * 2u);
  let more = load_places(record.z * 2u + 1u);
  let own = vec4u(q * 4u) + vec4u(0u, 1u, 2u, 3u) - vec4u(place.x);
  let row = place.w + own / place.z;
  var square = vec4f(at_factored(row.x), at_factored(row.y), at_factored(row.z), at_factored(row.w));
  if (more.y == 1u) {
    let column = more.x + own / (place.y * place.z) * place.z + own % place.z;
    square *= vec4f(at_factored(column.x), at_factored(column.y), at_factored(column.z), at_factored(column.w));
  }`,
  load({ factored, places }, { index, segment }, e) {
    const [start, rows, columns, rowBase, columnBase, isMatrix] = (places as KernelView).subarray(
      segment * factoredPlaceWords,
      (segment + 1) * factoredPlaceWords,
    ) as unknown as [number, number, number, number, number, number];
    const own = index - start;
    let square = factored?.[rowBase + Math.floor(own / columns)] as number;
    if (isMatrix) {
      const column = Math.floor(own / (rows * columns)) * columns + (own % columns);
      square *= factored?.[columnBase + column] as number;
    }
    e.square = square;
  },
};

/**
 * Adafactor (Shazeer and Stern 2018) as torch.optim computes it, from the squares of the factored moments. Columns are
 * `t^beta2Decay`, which the moments use, and `1 / sqrt(t)`.
 */
export const adafactorRule: UpdateRule = updateRule({
  name: "adafactor",
  state: {},
  scalars: ["eps1Squared", "eps2", "d", "weightDecay"],
  columns: ["share", "decay"],
  gather: gatherTotals,
  passes: [
    {
      inputs,
      totals: {
        terms: (e) => [e.p.square(), stepOf(e).square()],
        factors: ["rate"],
        make({ total0, total1, size, lr, decay, eps2, d }) {
          const root = size.sqrt();
          const alpha = eps2.max(total0.sqrt().div(root)).mul(lr.min(decay));
          return { rate: alpha.div(constant(1).max(total1.sqrt().div(root.mul(d)))) };
        },
      },
    },
    {
      inputs,
      update(e) {
        const decayed = e.p.mul(constant(1).sub(e.lr.mul(e.weightDecay)));
        return { p: decayed.sub(e.rate.mul(stepOf(e))) };
      },
    },
  ],
});

const stepOf = ({ g, square, eps1Squared }: Terms<"g" | "square" | "eps1Squared">): Term =>
  g.mul(square.max(eps1Squared).rsqrt());
