import type { VNode } from "preact";
import { DataTable } from "../charts/data-table.js";
import { useWidth } from "../charts/use-width.js";
import { bytesText } from "../formats/number-text.js";
import type { StepView, ValueView } from "./step-view.js";

interface MemoryProps {
  readonly step: StepView;
  /** Bytes of the step as recorded, which the axis reaches. */
  readonly most: number;
  /** Bytes of the step, with those of its results. */
  readonly peak: number;
  /** The launch at which a line is drawn; −1 for none. */
  readonly selected: number;
}

const roles: readonly { readonly role: ValueView["role"]; readonly text: string }[] = [
  { role: "activation", text: "kept for the backward pass" },
  { role: "gradient", text: "gradients" },
  { role: "temporary", text: "of the forward pass alone" },
  { role: "input", text: "from the host" },
  { role: "kept", text: "outlives the step" },
];

const height = 260;
/** Pixels below the pieces from which there is room to say what was recorded. */
const labelHeight = 24;

/** The launches from which to which a value is there. */
export function lifeText(first: number, last: number, launches: number): string {
  const from = first < 0 ? "start" : String(first + 1);
  return `${from}–${last >= launches ? "end" : last + 1}`;
}

/** Which values lie where in memory, and when: time goes to the right, bytes go down. */
export function Memory({ step, most, peak, selected }: MemoryProps): VNode {
  const [ref, width] = useWidth<HTMLDivElement>(640);
  const { slots, values, launches } = step;
  const total = slots.reduce((a, b) => a + b, 0);
  const scale = height / Math.max(most, total, 1);
  let top = 0;
  const tops = slots.map((bytes) => {
    const own = top;
    top += bytes * scale;
    return own;
  });
  // The host writes inputs before the first launch.
  const x = (launch: number): number => ((launch + 1) / (launches.length + 1)) * width;
  const shown = roles.filter(({ role }) => values.some((value) => value.role === role));
  return (
    <section class="toy" aria-labelledby="memory">
      <h2 id="memory">What lies in memory, and when</h2>
      <p>
        Time goes to the right, one column for each launch; the height of a bar is its bytes. As
        recorded, each value has memory of its own. Once memory is shared, values that are done make
        room for others: drag the slider to the end.
      </p>
      <p class="legend">
        {shown.map(({ role, text }) => (
          <span key={role}>
            <svg viewBox="0 0 22 12" aria-hidden="true">
              <rect class={`value ${role}`} width="22" height="12" />
            </svg>
            {text}
          </span>
        ))}
      </p>
      <div class="chart" ref={ref}>
        <svg
          width={width}
          height={height}
          role="img"
          aria-label={`${slots.length} pieces of memory for ${values.length} values`}
        >
          <defs>
            <pattern id="stripes" width="6" height="6" patternUnits="userSpaceOnUse">
              <path d="M0 6L6 0" class="stripe" />
            </pattern>
          </defs>
          {values.map(({ slot, first, last, role, bytes }, i) => {
            const [from, to] = [x(Math.max(first, -1)), x(Math.min(last, launches.length - 1) + 1)];
            const tall = Math.max(bytes * scale, 0.75);
            return (
              <rect
                key={i}
                class={`value ${role}`}
                x={from}
                y={tops[slot]}
                width={Math.max(to - from - 0.5, 1)}
                height={tall}
              />
            );
          })}
          {height * (1 - total / most) > labelHeight && (
            <g class="recorded">
              <rect x={0.5} y={0.5} width={width - 1} height={height - 1} />
              <text x={width - 8} y={height - 9} text-anchor="end">
                as recorded: {bytesText(most)}
              </text>
            </g>
          )}
          {selected >= 0 && (
            <line class="now" x1={x(selected + 0.5)} x2={x(selected + 0.5)} y1={0} y2={height} />
          )}
        </svg>
      </div>
      <p class="summary" aria-live="polite">
        {values.length} values in {slots.length} pieces of memory. With its results the step takes{" "}
        {bytesText(peak)}.
      </p>
      <DataTable summary="The memory as a table" label="Pieces of memory">
        <thead>
          <tr>
            {["piece", "size", "values, with the launches between which they live"].map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {slots.map((bytes, slot) => (
            <tr key={slot}>
              <th scope="row">{slot}</th>
              <td>{bytesText(bytes)}</td>
              <td>
                {values
                  .filter((value) => value.slot === slot)
                  .map(
                    ({ role, first, last }) => `${role} ${lifeText(first, last, launches.length)}`,
                  )
                  .join(", ")}
              </td>
            </tr>
          ))}
        </tbody>
      </DataTable>
    </section>
  );
}
