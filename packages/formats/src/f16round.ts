import { float16 } from "./float16.js";

type Round = (value: number) => number;

/**
 * The float16 nearest to a number, ties to even: `Math.f16round`, the engine's own where it rounds once. Converts its argument
 * to a number as that does. Chosen when this module loads, so that it can itself be installed as `Math.f16round`.
 */
export const f16round: Round = /* @__PURE__ */ (() => {
  const engine = (Math as { f16round?: Round }).f16round;
  // Ties that a detour through float32 would make or break, that of the smallest subnormal, and the edge of overflow.
  const hazards: readonly [value: number, rounded: number][] = [
    [1 + 2 ** -11 + 2 ** -40, 1 + 2 ** -10],
    [1 + 3 * 2 ** -11 - 2 ** -40, 1 + 2 ** -10],
    [2 ** -25 + 2 ** -60, 2 ** -24],
    [2 ** -25, 0],
    [65520 - 2 ** -30, 65504],
  ];
  const isRight = engine && hazards.every(([value, rounded]) => engine(value) === rounded);
  return isRight ? engine : (value) => float16.round(+value);
})();
