import type { ExponentHistogram } from "@halfstep/formats";
import type { VNode } from "preact";
import { DataTable } from "../charts/data-table.js";
import { percentText, powerText } from "../formats/number-text.js";
import type { TrainConfig } from "./config.js";
import { type Setup, setupOf } from "./setups.js";
import type { Training } from "./use-training.js";

interface HistogramsProps {
  readonly config: TrainConfig;
  readonly training: Training;
}

/** The axis, in powers of two. */
const low = -48;
const high = 24;
/** Magnitudes below are 0 in float16, and from the second on infinite. */
const leastOfFloat16 = -25;
const mostOfFloat16 = 16;

/** Where a power of two lies on the axis. */
const shareText = (power: number): string => `${(100 * (power - low)) / (high - low)}%`;

/** Gradients of each layer by powers of two, in each lane. */
export function Histograms({ config, training }: HistogramsProps): VNode {
  return (
    <section class="toy" aria-labelledby="histograms">
      <h2 id="histograms">Gradients, layer by layer</h2>
      <p>
        A gradient says how a weight should change. Each row is a tensor of weights, each column a
        power of two: the darker, the more gradients are of that size, times the loss scale. Left of
        the dashed line float16 has only zeros; right of the solid one everything is infinite.
      </p>
      <div class="heat-maps">
        {config.setups.map((id) => {
          const layers = training.lanes.get(id)?.statistics?.layers ?? [];
          return <HeatMap key={id} setup={setupOf(id)} layers={layers} />;
        })}
      </div>
    </section>
  );
}

interface HeatMapProps {
  readonly setup: Setup;
  readonly layers: readonly { readonly name: string; readonly histogram: ExponentHistogram }[];
}

function HeatMap({ setup, layers }: HeatMapProps): VNode {
  const zeros = layers.reduce((sum, { histogram }) => sum + histogram.zeros, 0);
  const count = layers.reduce((sum, { histogram }) => sum + histogram.count, 0);
  const broken = layers.reduce(
    (sum, { histogram }) => sum + histogram.infinities + histogram.nans,
    0,
  );
  return (
    <figure class="heat-map">
      <figcaption>
        <b>{setup.label}</b>{" "}
        {count === 0
          ? "no gradients yet"
          : `${percentText(zeros / count)} zero, ${percentText(broken / count)} infinite or NaN`}
      </figcaption>
      {count > 0 && (
        <svg
          viewBox={`0 0 ${high - low} ${layers.length}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`Gradients of ${setup.label} by powers of two from ${powerText(low)} to ${powerText(high)}, a row for each of ${layers.length} tensors`}
        >
          {layers.map(({ name, histogram }, row) => (
            <g key={name}>
              <title>{name}</title>
              {cellsOf(histogram).map(({ exponent, weight }) => (
                <rect
                  key={exponent}
                  x={exponent - low}
                  y={row + 0.08}
                  width={1}
                  height={0.84}
                  fill-opacity={weight}
                />
              ))}
            </g>
          ))}
          <line
            class="least"
            x1={leastOfFloat16 - low}
            x2={leastOfFloat16 - low}
            y1={0}
            y2={layers.length}
          />
          <line
            class="most"
            x1={mostOfFloat16 - low}
            x2={mostOfFloat16 - low}
            y1={0}
            y2={layers.length}
          />
        </svg>
      )}
      {count > 0 && (
        <p class="scale" aria-hidden="true">
          <span style={{ left: shareText(low) }}>{powerText(low)}</span>
          <span style={{ left: shareText(leastOfFloat16) }}>0 in float16</span>
          <span style={{ left: shareText(mostOfFloat16) }}>infinite</span>
        </p>
      )}
      {count > 0 && (
        <DataTable summary="as a table" label={`Gradients of ${setup.label}`}>
          <thead>
            <tr>
              <th scope="col">tensor</th>
              <th scope="col">smallest</th>
              <th scope="col">largest</th>
              <th scope="col">zero</th>
            </tr>
          </thead>
          <tbody>
            {layers.map(({ name, histogram }) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>{boundText(histogram.min)}</td>
                <td>{boundText(histogram.max)}</td>
                <td>{percentText(histogram.zeros / Math.max(histogram.count, 1))}</td>
              </tr>
            ))}
          </tbody>
        </DataTable>
      )}
    </figure>
  );
}

const boundText = (value: number): string =>
  value === 0 ? "none" : powerText(Math.floor(Math.log2(value)));

/** A column of a row, and how dark it is. */
interface Cell {
  readonly exponent: number;
  readonly weight: number;
}

/** The columns of a row: gradients beyond the axis are in its first and last one. Zeros and infinities are not among them. */
export function cellsOf({
  firstExponent,
  counts,
}: Pick<ExponentHistogram, "firstExponent" | "counts">): readonly Cell[] {
  const columns = new Map<number, number>();
  for (const [i, count] of counts.entries()) {
    const exponent = Math.min(Math.max(firstExponent + i, low), high - 1);
    if (count > 0) columns.set(exponent, (columns.get(exponent) ?? 0) + count);
  }
  const most = Math.max(...columns.values(), 1);
  // Few gradients must be seen beside many.
  return [...columns].map(([exponent, count]) => ({
    exponent,
    weight: Math.round(100 * Math.max(Math.sqrt(count / most), 0.12)) / 100,
  }));
}
