import type { KernelView } from "@halfstep/device";
import { factoredPlaceWords } from "./factored-moments.js";
import { type PassInputs, type UpdateRule, updateRule } from "./rule.js";

/**
 * The estimate of an element's square from the factored moments (of `factoredMoments`): row share times column, or a separate
 * number for vectors.
 */
const inputs: PassInputs = {
  bindings: [
    { name: "factored", access: "read", unit: 1, dtypes: ["float32"] },
    { name: "places", access: "read", dtypes: ["uint32"] },
  ],
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
  passes: [
    {
      inputs,
      wgsl: "let u = g * inverseSqrt(max(square, vec4f(eps1Squared)));",
      update() {},
      totals: {
        terms: [
          { wgsl: "p * p", value: (e) => e.p * e.p },
          { wgsl: "u * u", value: (e, s) => stepOf(e, s) ** 2 },
        ],
        factors: ["rate"],
        wgsl: `let root = sqrt(size);
  let alpha = max(eps2, sqrt(total0) / root) * min(lr, decay);
  rate = alpha / max(1.0, sqrt(total1) / (root * d));`,
        update(t, s) {
          const { total0, total1, size } = t as { total0: number; total1: number; size: number };
          const root = Math.sqrt(size);
          const alpha = Math.max(s.eps2, Math.sqrt(total0) / root) * Math.min(s.lr, s.decay);
          t.rate = alpha / Math.max(1, Math.sqrt(total1) / (root * s.d));
        },
      },
    },
    {
      inputs,
      wgsl: `let u = g * inverseSqrt(max(square, vec4f(eps1Squared)));
  p = p * (1.0 - lr * weightDecay) - rate * u;`,
      update(e, s) {
        e.p = e.p * (1 - s.lr * s.weightDecay) - s.rate * stepOf(e, s);
      },
    },
  ],
});

function stepOf(e: { readonly g: number }, s: { readonly eps1Squared: number }): number {
  const { square } = e as unknown as { readonly square: number };
  return e.g / Math.sqrt(Math.max(square, s.eps1Squared));
}
