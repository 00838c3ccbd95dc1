import {
  bfloat16,
  float8e4m3fn,
  float8e5m2,
  float16,
  float32,
  type RealFormat,
  tfloat32,
} from "@halfstep/formats";
import type { VNode } from "preact";
import { numberText, powerText } from "./number-text.js";
import { largestN } from "./page-state.js";

const formats: readonly RealFormat[] = [
  float32,
  tfloat32,
  float16,
  bfloat16,
  float8e4m3fn,
  float8e5m2,
];
const exponents = Array.from({ length: largestN }, (_, i) => i + 1);

interface OnePlusProps {
  readonly n: number;
  readonly onN: (n: number) => void;
}

/** 1 + 2⁻ⁿ in several formats: kept as long as the fraction has a bit for it. */
export function OnePlus({ n, onN }: OnePlusProps): VNode {
  const lost = formats.filter((format) => !keeps(format, n)).map(({ name }) => name);
  return (
    <section class="toy" aria-labelledby="one-plus">
      <h2 id="one-plus">How small an update still counts?</h2>
      <p>
        A weight is 1, and training wants to add 2⁻ⁿ to it. A format with too few fraction bits
        rounds the sum back to 1. The weight never learns, however often the update comes.
      </p>
      <label class="slider">
        <span>
          n = <b>{n}</b>, add {powerText(-n)} = {numberText(2 ** -n)}
        </span>
        <input
          type="range"
          min={1}
          max={largestN}
          value={n}
          onInput={({ currentTarget }) => onN(Number(currentTarget.value))}
        />
      </label>
      <table class="one-plus">
        <caption class="unseen">Which formats keep 1 + 2⁻ⁿ</caption>
        <thead>
          <tr>
            <th scope="col">format</th>
            <th scope="col">
              kept up to <span class="hint">each mark is an n, from 1 to {largestN}</span>
            </th>
            <th scope="col">1 + {powerText(-n)}</th>
          </tr>
        </thead>
        <tbody>
          {formats.map((format) => (
            <tr key={format.name} class={keeps(format, n) ? "" : "lost"}>
              <th scope="row">{format.name}</th>
              <td>
                <span class="marks" role="img" aria-label={`n from 1 to ${keptUpTo(format)}`}>
                  {exponents.map((k) => (
                    <span
                      key={k}
                      class={`mark ${keeps(format, k) ? "kept" : "gone"} ${k === n ? "now" : ""}`}
                    />
                  ))}
                </span>
              </td>
              <td class="result">
                {keeps(format, n) ? numberText(format.round(1 + 2 ** -n), 10) : "1, lost"}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="summary" aria-live="polite">
        {lost.length === 0
          ? `All six keep 1 + ${powerText(-n)}.`
          : lost.length === formats.length
            ? `No format here keeps 1 + ${powerText(-n)}.`
            : `Lost in ${lost.join(", ")}.`}{" "}
        Therefore mixed precision keeps a float32 copy of each weight, the <em>master</em>, and adds
        updates there.
      </p>
    </section>
  );
}

const keeps = (format: RealFormat, n: number): boolean => format.round(1 + 2 ** -n) !== 1;

const keptUpTo = (format: RealFormat): number =>
  exponents.findLast((n) => keeps(format, n)) as number;
