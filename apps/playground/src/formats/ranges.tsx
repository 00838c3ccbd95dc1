import type { VNode } from "preact";
import { useRef } from "preact/hooks";
import { type Layout, type LayoutName, layouts } from "./layouts.js";
import { numberText, powerText } from "./number-text.js";
import {
  type Axis,
  axes,
  chartWidth,
  exponentAt,
  niceNumber,
  outlineOf,
  positionOf,
  positionOfNumber,
  type Zoom,
} from "./reach.js";
import { lossText, type Stored, store } from "./stored.js";

interface RangesProps {
  readonly selected: LayoutName;
  readonly wished: number;
  readonly zoom: Zoom;
  readonly onSelect: (name: LayoutName) => void;
  readonly onWish: (value: number) => void;
  readonly onZoom: (zoom: Zoom) => void;
}

const rowHeight = 34;
const ticks: Readonly<Record<Zoom, readonly number[]>> = {
  everything: [-149, -100, -50, 0, 50, 100],
  training: [-40, -24, -14, 0, 8, 16],
};

const zooms: readonly { readonly id: Zoom; readonly label: string }[] = [
  { id: "everything", label: "everything that float32 reaches" },
  { id: "training", label: "what training is about" },
];

/** All formats over one axis: how far each reaches, how fine it is, and what it makes of the number. */
export function Ranges({ selected, wished, zoom, onSelect, onWish, onZoom }: RangesProps): VNode {
  const axis = axes[zoom];
  const sign = wished < 0 ? -1 : 1;
  const place = (positionOfNumber(axis, wished) ?? -1) / chartWidth;
  const drag = useRef(false);
  const wishAt = (event: PointerEvent): void => {
    const track = (event.currentTarget as Element).getBoundingClientRect();
    const wish = niceNumber(axis, (event.clientX - track.left) / track.width);
    onWish(wish === 0 ? 0 : sign * wish);
  };
  const dragging = {
    onPointerDown: (event: PointerEvent) => {
      drag.current = true;
      (event.currentTarget as Element).setPointerCapture(event.pointerId);
      wishAt(event);
    },
    onPointerMove: (event: PointerEvent) => {
      if (drag.current) wishAt(event);
    },
    onPointerUp: () => {
      drag.current = false;
    },
    onPointerCancel: () => {
      drag.current = false;
    },
  };
  return (
    <>
      <p class="controls">
        {zooms.map(({ id, label }) => (
          <button
            key={id}
            type="button"
            class="pill"
            aria-pressed={id === zoom}
            onClick={() => onZoom(id)}
          >
            {label}
          </button>
        ))}
      </p>
      <table class="ranges">
        <caption>
          Each shape is one format. <b>Long</b> shapes reach far, <b>thick</b> ones are fine; the
          thin tail on the left holds subnormal numbers. Drag anywhere across the shapes.
        </caption>
        <thead>
          <tr>
            <th scope="col">format</th>
            <th scope="col" class="layout">
              <abbr title="sign, exponent and fraction bits">bits</abbr>
            </th>
            <th scope="col" class="track">
              <Handle
                zoom={zoom}
                place={place}
                wished={wished}
                onWish={onWish}
                dragging={dragging}
              />
            </th>
            <th scope="col" class="number">
              stores
            </th>
            <th scope="col" class="loss">
              error
            </th>
          </tr>
        </thead>
        <tbody>
          {layouts.map((layout) => {
            const stored = store(layout, wished);
            return (
              <tr key={layout.name} class={layout.name === selected ? "selected" : ""}>
                <th scope="row">
                  <button
                    type="button"
                    aria-pressed={layout.name === selected}
                    onClick={() => onSelect(layout.name)}
                  >
                    {layout.name}
                  </button>
                </th>
                <td class="layout">
                  <LayoutText layout={layout} />
                </td>
                <td class="track" {...dragging}>
                  <Shape
                    axis={axis}
                    ticks={ticks[zoom]}
                    layout={layout}
                    stored={stored}
                    wished={wished}
                  />
                </td>
                <td class="number">
                  {stored.outcome === "refused" ? "—" : numberText(stored.value, 5)}
                </td>
                <td class={`loss ${stored.outcome}`}>{lossText(stored)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </>
  );
}

function LayoutText({ layout }: { layout: Layout }): VNode {
  const { isSigned, exponentBits, mantissaBits } = layout;
  return (
    <span class="layout-text">
      <span class="sign">{isSigned ? 1 : 0}</span>
      <span class="exponent">{exponentBits}</span>
      <span class="mantissa">{mantissaBits}</span>
    </span>
  );
}

interface ShapeProps {
  readonly axis: Axis;
  readonly ticks: readonly number[];
  readonly layout: Layout;
  readonly stored: Stored;
  readonly wished: number;
}

/** The outline of a format with the number on it. */
function Shape({ axis, ticks, layout, stored, wished }: ShapeProps): VNode {
  const at = positionOfNumber(axis, wished);
  const isHeld = stored.outcome === "exact" || stored.outcome === "rounded";
  return (
    <svg
      class="shape"
      viewBox={`0 0 ${chartWidth} ${rowHeight}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      {ticks.map((tick) => (
        <line
          key={tick}
          class="grid"
          x1={positionOf(axis, tick)}
          x2={positionOf(axis, tick)}
          y1={0}
          y2={rowHeight}
        />
      ))}
      <path class="outline" d={outlineOf(axis, layout, rowHeight)} />
      {at !== undefined && (
        <line class={isHeld ? "held" : "lost"} x1={at} x2={at} y1={0} y2={rowHeight} />
      )}
    </svg>
  );
}

interface HandleProps {
  readonly zoom: Zoom;
  readonly place: number;
  readonly wished: number;
  readonly onWish: (value: number) => void;
  readonly dragging: object;
}

/** The axis with its slider. Arrow keys move by a quarter of a power of two, page keys by eight powers. */
function Handle({ zoom, place, wished, onWish, dragging }: HandleProps): VNode {
  const axis = axes[zoom];
  const sign = wished < 0 ? -1 : 1;
  const exponent = place >= 0 ? exponentAt(axis, place) : 0;
  const onKeyDown = (event: KeyboardEvent): void => {
    const steps: Readonly<Record<string, number>> = {
      ArrowRight: 0.25,
      ArrowUp: 0.25,
      ArrowLeft: -0.25,
      ArrowDown: -0.25,
      PageUp: 8,
      PageDown: -8,
      Home: -Infinity,
      End: Infinity,
    };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = exponent + step;
    const power = next < axis.low ? 0 : next > axis.high ? Infinity : 2 ** next;
    onWish(power === 0 ? 0 : sign * Number(power.toPrecision(4)));
  };
  return (
    <div class="axis" {...dragging}>
      {ticks[zoom].map((tick) => (
        <span key={tick} class="tick" style={leftOf(positionOf(axis, tick) / chartWidth)}>
          {powerText(tick)}
        </span>
      ))}
      {place >= 0 && (
        <span
          class="handle"
          style={leftOf(place)}
          role="slider"
          tabIndex={0}
          aria-label="Magnitude of the number"
          aria-valuemin={axis.low}
          aria-valuemax={axis.high}
          aria-valuenow={Math.round(100 * exponent) / 100}
          aria-valuetext={numberText(wished, 4)}
          onKeyDown={onKeyDown}
        >
          <span class="bubble">{numberText(wished, 4)}</span>
        </span>
      )}
    </div>
  );
}

/** Where something lies on its line. */
const leftOf = (place: number): { left: string } => ({ left: `${(100 * place).toFixed(3)}%` });
