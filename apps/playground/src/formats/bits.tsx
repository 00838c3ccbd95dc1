import type { VNode } from "preact";
import { useRef, useState } from "preact/hooks";
import { type Layout, widthOf } from "./layouts.js";
import { numberText, powerText } from "./number-text.js";
import { fieldsOf } from "./stored.js";

interface BitsProps {
  readonly layout: Layout;
  readonly bits: string;
  readonly onBits: (bits: string) => void;
  /** One number up or down. */
  readonly onStep: (direction: 1 | -1) => void;
}

type FieldName = "sign" | "exponent" | "mantissa";

interface Group {
  readonly field: FieldName;
  readonly title: string;
  readonly start: number;
  readonly end: number;
  readonly said: string;
}

/** The bits of a code as switches, by field. Arrow keys move along the bits and step through the numbers. */
export function Bits({ layout, bits, onBits, onStep }: BitsProps): VNode {
  const [focused, setFocused] = useState(0);
  const row = useRef<HTMLFieldSetElement>(null);
  const width = widthOf(layout);
  const current = Math.min(focused, width - 1);
  const flip = (i: number): void =>
    onBits(bits.slice(0, i) + (bits[i] === "0" ? "1" : "0") + bits.slice(i + 1));
  const focus = (i: number): void => {
    setFocused(i);
    row.current?.querySelectorAll("button")[i]?.focus();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const actions: Readonly<Record<string, () => void>> = {
      ArrowLeft: () => focus(Math.max(current - 1, 0)),
      ArrowRight: () => focus(Math.min(current + 1, width - 1)),
      Home: () => focus(0),
      End: () => focus(width - 1),
      ArrowUp: () => onStep(1),
      ArrowDown: () => onStep(-1),
    };
    const action = actions[event.key];
    if (action === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    action();
  };
  return (
    <fieldset
      class={`bits ${width > 32 ? "tiny" : width > 19 ? "small" : width > 10 ? "" : "large"}`}
      ref={row}
      aria-label={`Bits of ${layout.name}. Arrow left and right move, space flips, arrow up and down go to the next number.`}
      onKeyDown={onKeyDown}
    >
      {groupsOf(layout, bits).map(({ field, title, start, end, said }) => (
        <div key={field} class={`field ${field}`}>
          <div class="cells">
            {Array.from({ length: end - start }, (_, k) => start + k).map((i) => (
              <button
                key={i}
                type="button"
                class="bit"
                aria-pressed={bits[i] === "1"}
                aria-label={`${bits[i]}, ${title} bit ${i - start + 1} of ${end - start}${weightOf(layout, field, i - start)}`}
                tabIndex={i === current ? 0 : -1}
                onFocus={() => setFocused(i)}
                onClick={() => flip(i)}
              >
                {bits[i]}
              </button>
            ))}
          </div>
          <div class="said">
            <strong>{title}</strong> <span>{said}</span>
          </div>
        </div>
      ))}
    </fieldset>
  );
}

function groupsOf(layout: Layout, bits: string): readonly Group[] {
  const { said } = fieldsOf(layout, bits);
  const start = layout.isSigned ? 1 : 0;
  const middle = start + layout.exponentBits;
  const groups: readonly Group[] = [
    { field: "sign", title: "sign", start: 0, end: start, said: said.sign },
    { field: "exponent", title: "exponent", start, end: middle, said: said.exponent },
    { field: "mantissa", title: "fraction", start: middle, end: bits.length, said: said.mantissa },
  ];
  return groups.filter((group) => group.end > group.start);
}

/** What a bit is worth, for its name. */
function weightOf({ exponentBits }: Layout, field: FieldName, i: number): string {
  if (field === "sign") return "";
  const weight = field === "exponent" ? exponentBits - 1 - i : -1 - i;
  return field === "exponent" ? `, worth ${2 ** weight}` : `, worth ${powerText(weight)}`;
}

interface EquationProps {
  readonly layout: Layout;
  readonly bits: string;
}

/** How the bits make the number. */
export function Equation({ layout, bits }: EquationProps): VNode {
  const { formula, kind } = fieldsOf(layout, bits);
  const value = layout.numberOf(bits);
  const hasFormula = kind === "normal" || kind === "subnormal";
  return (
    <p class="equation">
      {hasFormula && <span class="formula">{formula} = </span>}
      <output class="value">{numberText(value, 17)}</output>
      {kind !== "normal" && <span class={`kind ${kind}`}>{kindText[kind]}</span>}
    </p>
  );
}

const kindText = {
  normal: "",
  subnormal: "subnormal: precision fades out towards zero",
  zero: "zero",
  infinity: "too large for the format",
  nan: "not a number",
} as const;
