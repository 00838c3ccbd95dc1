import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import { DataTable } from "../charts/data-table.js";
import { LineChart } from "../charts/line-chart.js";
import { numberText } from "./number-text.js";
import { noted, stallOf, sumsOf, termCount } from "./sums.js";

interface SumToyProps {
  readonly term: number;
  readonly seed: number;
  readonly onTerm: (term: number) => void;
  readonly onSeed: (seed: number) => void;
}

const terms = [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];

/** A sum of 4,096 equal terms, kept in four ways. */
export function SumToy({ term, seed, onTerm, onSeed }: SumToyProps): VNode {
  const sums = useMemo(() => sumsOf(term, seed), [term, seed]);
  const exact = termCount * Math.fround(term);
  const top = 1.12 * Math.max(exact, ...sums.map(({ values }) => values.at(-1) ?? 0));
  const nearest = terms.reduce(
    (best, each, i) =>
      Math.abs(each - term) < Math.abs((terms[best] as number) - term) ? i : best,
    0,
  );
  const stalled = sums.flatMap((sum) => {
    const stall = stallOf(sum);
    return stall === undefined
      ? []
      : [
          `${sum.label} stops after about ${stall.toLocaleString("en-US")} terms, at ${numberText(sum.values.at(-1) as number)}`,
        ];
  });
  return (
    <section class="toy" aria-labelledby="sum">
      <h2 id="sum">Why does a sum stop growing?</h2>
      <p>
        Add the same small term 4,096 times, and keep the sum in one format. Once the sum is so
        large that the term is less than half the distance to the next number, nothing more arrives.{" "}
        <em>Stochastic</em> rounding goes up or down by chance, in proportion: each sum is a little
        wrong, and right on average (here in bfloat16).
      </p>
      <div class="controls">
        <label class="slider">
          <span>
            add <b>{numberText(term)}</b>
          </span>
          <input
            type="range"
            min={0}
            max={terms.length - 1}
            value={nearest}
            aria-valuetext={numberText(term)}
            onInput={({ currentTarget }) => onTerm(terms[Number(currentTarget.value)] as number)}
          />
        </label>
        <button type="button" onClick={() => onSeed((seed % 9999) + 1)}>
          Roll the dice again
        </button>
      </div>
      <LineChart
        title={`Running sums of ${numberText(term)} in four formats`}
        x={{ label: "terms added", values: noted }}
        y={{ label: "sum", domain: [0, top], text: (value) => numberText(value, 3) }}
        series={sums}
        target={{ value: exact, label: `exact: ${numberText(exact, 5)}` }}
      />
      <p class="summary" aria-live="polite">
        {stalled.length === 0 ? "No sum stops." : `${stalled.join("; ")}.`}
      </p>
      <DataTable summary="The sums as a table" label="Sums">
        <thead>
          <tr>
            <th scope="col">terms</th>
            {sums.map(({ name, label }) => (
              <th key={name} scope="col">
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {noted.map((count, i) =>
            count % 512 === 0 ? (
              <tr key={count}>
                <th scope="row">{count.toLocaleString("en-US")}</th>
                {sums.map(({ name, values }) => (
                  <td key={name}>{numberText(values[i] as number, 6)}</td>
                ))}
              </tr>
            ) : null,
          )}
        </tbody>
      </DataTable>
    </section>
  );
}
