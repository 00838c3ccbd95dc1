import { formatOf } from "@halfstep/formats";
import type { VNode } from "preact";
import { DataTable } from "../charts/data-table.js";
import { useWidth } from "../charts/use-width.js";
import { type Bar, barsOf, type Fate, gradientSets, sharesOf } from "./gradients.js";
import { percentText, powerText } from "./number-text.js";
import { type GradientFormat, gradientFormats, largestScale } from "./page-state.js";

interface GradientToyProps {
  readonly gradients: string;
  readonly into: GradientFormat;
  readonly scale: number;
  readonly onChange: (change: {
    gradients?: string;
    into?: GradientFormat;
    scale?: number;
  }) => void;
}

const fates: readonly { readonly fate: Fate; readonly label: string }[] = [
  { fate: "zero", label: "become 0" },
  { fate: "subnormal", label: "subnormal" },
  { fate: "normal", label: "in full precision" },
  { fate: "infinite", label: "infinite" },
];

/** The axis of the chart, in powers of two. */
const low = -48;
const high = 24;
const height = 240;
/** Pixels that the name of a limit takes. */
const labelWidth = 76;
const foot = 34;

/** Real gradients by size, under a loss scale. */
export function GradientToy({ gradients, into, scale, onChange }: GradientToyProps): VNode {
  const set = gradientSets.find(({ id }) => id === gradients) ?? gradientSets[0];
  const bars = set === undefined ? [] : barsOf(set, formatOf(into), scale);
  const shares = sharesOf(bars);
  return (
    <section class="toy" aria-labelledby="gradients">
      <h2 id="gradients">Where do gradients get lost?</h2>
      <p>
        These gradients come from one real step of training. Each bar counts those of one power of
        two. Move the loss scale: all bars move together, away from zero and towards infinity. The
        art is to lose nothing on either side.
      </p>
      <div class="controls">
        <label>
          gradients of
          <select
            value={set?.id}
            onChange={({ currentTarget }) => onChange({ gradients: currentTarget.value })}
          >
            {gradientSets.map(({ id, label }) => (
              <option key={id} value={id}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <label>
          stored in
          <select
            value={into}
            onChange={({ currentTarget }) =>
              onChange({ into: currentTarget.value as GradientFormat })
            }
          >
            {gradientFormats.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label class="slider">
          <span>
            loss scale <b>{powerText(scale)}</b> = {(2 ** scale).toLocaleString("en-US")}
          </span>
          <input
            type="range"
            min={0}
            max={largestScale}
            value={scale}
            aria-valuetext={`2 to the power of ${scale}`}
            onInput={({ currentTarget }) => onChange({ scale: Number(currentTarget.value) })}
          />
        </label>
      </div>
      <Histogram
        bars={bars}
        title={`Gradients of ${set?.label} times ${powerText(scale)} in ${into}, by powers of two`}
        into={into}
      />
      <dl class="shares" aria-live="polite">
        {fates.map(({ fate, label }) => (
          <div key={fate} class={fate}>
            <dt>{label}</dt>
            <dd>{percentText(shares[fate])}</dd>
          </div>
        ))}
      </dl>
      <DataTable summary="The bars as a table" label="Gradients by size">
        <thead>
          <tr>
            <th scope="col">from</th>
            <th scope="col">share</th>
            <th scope="col">in {into}</th>
          </tr>
        </thead>
        <tbody>
          {bars.map(({ exponent, share, fate }) => (
            <tr key={exponent}>
              <th scope="row">{powerText(exponent)}</th>
              <td>{percentText(share)}</td>
              <td>{fates.find((each) => each.fate === fate)?.label}</td>
            </tr>
          ))}
        </tbody>
      </DataTable>
    </section>
  );
}

interface HistogramProps {
  readonly bars: readonly Bar[];
  readonly title: string;
  readonly into: GradientFormat;
}

function Histogram({ bars, title, into }: HistogramProps): VNode {
  const [ref, width] = useWidth<HTMLDivElement>(640);
  const { finfo } = formatOf(into);
  const step = width / (high - low);
  const x = (exponent: number): number => (exponent - low) * step;
  const tallest = Math.max(...bars.map(({ share }) => share), 1e-9);
  const base = height - foot;
  const limits = [
    { exponent: Math.log2(finfo.smallestSubnormal) - 1, label: "becomes 0", side: -1 },
    {
      exponent: Math.ceil(Math.log2(finfo.max)),
      label: finfo.max > 1e9 ? "" : "too large",
      side: 1,
    },
  ].filter(({ exponent }) => exponent > low && exponent < high);
  return (
    <div class="chart histogram" ref={ref}>
      <svg
        width={width}
        height={height}
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={title}
      >
        <defs>
          <pattern
            id="hatched"
            width="5"
            height="5"
            patternUnits="userSpaceOnUse"
            patternTransform="rotate(45)"
          >
            <rect class="hatch-ground" width="5" height="5" />
            <line class="hatch" x1="0" y1="0" x2="0" y2="5" />
          </pattern>
        </defs>
        {limits.map(({ exponent, label, side }) => (
          <g key={label} class="limit">
            <rect
              x={side < 0 ? 0 : x(exponent)}
              y={0}
              width={side < 0 ? x(exponent) : width - x(exponent)}
              height={base}
            />
            {side < 0 || width - x(exponent) < labelWidth ? (
              <text x={side < 0 ? x(exponent) - 8 : width - 4} y={16} text-anchor="end">
                {label}
              </text>
            ) : (
              <text x={x(exponent) + 8} y={16}>
                {label}
              </text>
            )}
          </g>
        ))}
        {bars.map(({ exponent, share, fate }, i) => {
          const tall = share === 0 ? 0 : Math.max(1.5, (share / tallest) * (base - 28));
          return (
            <rect
              // A bar is the same one after it moved.
              key={i}
              class={`bar ${fate}`}
              x={x(exponent) + 0.5}
              y={base - tall}
              width={Math.max(step - 1, 1)}
              height={tall}
            />
          );
        })}
        <line class="base" x1={0} x2={width} y1={base} y2={base} />
        {[-40, -24, -14, 0, 16].map((tick) => (
          <g key={tick} class="tick">
            <line x1={x(tick)} x2={x(tick)} y1={base} y2={base + 5} />
            <text x={x(tick)} y={base + 20} text-anchor="middle">
              {powerText(tick)}
            </text>
          </g>
        ))}
      </svg>
    </div>
  );
}
