import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { numberText, percentText } from "../formats/number-text.js";
import type { TensorExam } from "./examine.js";
import { nameText } from "./name-text.js";
import { nonFiniteOf, verdictOf } from "./verdict.js";

/** The columns: names of the formats that the worker compares with. */
export const formatNames = ["float16", "bfloat16", "float8e4m3fn", "float8e5m2"] as const;

/** Rows of the table at first, and those that each press of the button adds. */
const rowsAtOnce = 200;

const losesNumbers = ({ losses = [] }: TensorExam): boolean =>
  losses.some((loss) => ["broken", "lossy"].includes(verdictOf(loss).grade));

interface ExamsProps {
  readonly exams: readonly TensorExam[];
  /** Whether only tensors that overflow or become 0 have rows. */
  readonly isWorst: boolean;
  readonly onWorst: (isWorst: boolean) => void;
}

/** What each tensor would lose, a row for each; a part of them where there are many. */
export function Exams({ exams, isWorst, onWorst }: ExamsProps): VNode {
  const [most, setMost] = useState(rowsAtOnce);
  const chosen = isWorst ? exams.filter(losesNumbers) : exams;
  const rest = chosen.length - most;
  return (
    <section class="toy" aria-labelledby="exams">
      <h2 id="exams">Tensor by tensor</h2>
      <p>
        Overflow is the worst: one infinite weight spoils every result. Numbers that become 0 are
        gone. The rest is off by the mean relative error after ±. A scale for each tensor, as float8
        training has it, moves numbers back into range. Integers and other tensors without such
        numbers have a dash.
      </p>
      <label>
        <input
          type="checkbox"
          checked={isWorst}
          onChange={({ currentTarget }) => onWorst(currentTarget.checked)}
        />{" "}
        only tensors that overflow or become 0
      </label>

      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table is scrolled by keyboard */}
      <section class="scroll" tabIndex={0} aria-label="Losses by tensor">
        <table class="exams">
          <thead>
            <tr>
              <th scope="col">tensor</th>
              <th scope="col">stored as</th>
              <th scope="col">largest</th>
              {formatNames.map((name) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {chosen.slice(0, most).map(({ name, dtype, shape, largest, losses }) => (
              <tr key={name}>
                <th scope="row">
                  <bdi title={name}>{nameText(name)}</bdi>{" "}
                  <small>{shape.length === 0 ? "scalar" : shape.join(" × ")}</small>
                </th>
                <td>{dtype}</td>
                <td class="figure">
                  {losses && nonFiniteOf(losses) < 1 ? numberText(largest, 3) : "—"}
                  {nonFiniteOf(losses) > 0 && (
                    <small> {percentText(nonFiniteOf(losses))} NaN or ∞</small>
                  )}
                </td>
                {formatNames.map((format, i) => {
                  const loss = losses?.[i];
                  if (loss === undefined) return <td key={format}>—</td>;
                  const { grade, text } = verdictOf(loss);
                  return (
                    <td key={format} class={`verdict ${grade}`}>
                      {text}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {rest > 0 && (
        <p>
          <button type="button" onClick={() => setMost(most + rowsAtOnce)}>
            Show {Math.min(rest, rowsAtOnce)} more of {rest}
          </button>
        </p>
      )}
    </section>
  );
}
