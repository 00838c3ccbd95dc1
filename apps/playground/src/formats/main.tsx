import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Shell } from "../site/shell.js";
import { showPage } from "../site/show-page.js";
import { useUrlState } from "../site/url-state.js";
import { Bits, Equation } from "./bits.js";
import { GradientToy } from "./gradient-toy.js";
import type { LayoutName } from "./layouts.js";
import { Neighbourhood } from "./neighbourhood.js";
import { numberText, parseNumber } from "./number-text.js";
import { OnePlus } from "./one-plus.js";
import { currentOf, pageFields } from "./page-state.js";
import { Ranges } from "./ranges.js";
import { store, storySentence } from "./stored.js";
import { type Story, stories } from "./stories.js";
import { SumToy } from "./sum-toy.js";

function FormatsPage(): VNode {
  const [state, change, strange] = useUrlState(pageFields);
  const { layout, wished, bits } = currentOf(state);
  const stored = store(layout, wished);
  const wish = (value: number): void => change({ value, bits: "" });
  const select = (format: LayoutName): void => change({ format, value: wished, bits: "" });
  const step = (direction: 1 | -1): void => {
    const next =
      direction > 0 ? layout.real.nextUp(stored.value) : layout.real.nextDown(stored.value);
    if (!Number.isNaN(next)) wish(next);
  };
  const story = stories.find((each) => each.format === state.format && each.value === wished);
  return (
    <Shell page="formats" strange={strange}>
      <section class="hero">
        <h1>How much of a number survives?</h1>
        <p class="lead">
          Neural networks are trained with numbers of 16 bits and fewer. Every bit is spent either
          on <span class="exponent">range</span> or on <span class="mantissa">precision</span>. Flip
          some, and watch the number change.
        </p>
        <Chips story={story} onStory={({ format, value }) => change({ format, value, bits: "" })} />
        <div class="workbench">
          <div class="entry">
            <NumberInput value={wished} onValue={wish} />
            <p class="about">
              <b>{layout.name}</b> {layout.about}
            </p>
          </div>
          {bits === undefined ? (
            <p class="equation">{layout.name} has no code for NaN.</p>
          ) : (
            <>
              <Bits
                layout={layout}
                bits={bits}
                onBits={(next) => change({ bits: next, value: layout.numberOf(next) })}
                onStep={step}
              />
              <Equation layout={layout} bits={bits} />
            </>
          )}
          {Number.isFinite(stored.value) && (
            <div class="steps">
              <button type="button" aria-label="Next smaller number" onClick={() => step(-1)}>
                ‹
              </button>
              <Neighbourhood layout={layout} wished={wished} stored={stored.value} />
              <button type="button" aria-label="Next larger number" onClick={() => step(1)}>
                ›
              </button>
            </div>
          )}
          <p class="summary" aria-live="polite">
            {storySentence(layout, wished, stored)}
          </p>
        </div>
      </section>
      <section aria-labelledby="side-by-side">
        <h2 id="side-by-side">The same number in sixteen formats</h2>
        <Ranges
          selected={state.format}
          wished={wished}
          zoom={state.zoom}
          onSelect={select}
          onWish={wish}
          onZoom={(zoom) => change({ zoom })}
        />
      </section>
      <OnePlus n={state.n} onN={(n) => change({ n })} />
      <SumToy
        term={state.term}
        seed={state.seed}
        onTerm={(term) => change({ term })}
        onSeed={(seed) => change({ seed })}
      />
      <GradientToy
        gradients={state.gradients}
        into={state.into}
        scale={state.scale}
        onChange={change}
      />
    </Shell>
  );
}

interface ChipsProps {
  readonly story: Story | undefined;
  readonly onStory: (story: Story) => void;
}

/** Numbers to begin with. */
function Chips({ story, onStory }: ChipsProps): VNode {
  return (
    <div class="stories">
      <p class="chips">
        <span>Try</span>
        {stories.map((each) => (
          <button
            key={each.label}
            type="button"
            class="pill"
            aria-pressed={each === story}
            onClick={() => onStory(each)}
          >
            {each.label}
          </button>
        ))}
      </p>
      <p class="story" aria-live="polite">
        {story?.text ?? "Type a number, flip a bit, or drag the line below across the formats."}
      </p>
    </div>
  );
}

interface NumberInputProps {
  readonly value: number;
  readonly onValue: (value: number) => void;
}

/** A field for numbers that keeps what is typed until it is one. */
function NumberInput({ value, onValue }: NumberInputProps): VNode {
  const [text, setText] = useState<string>();
  useEffect(() => {
    // A number that came from elsewhere replaces the text.
    if (text !== undefined && !Object.is(parseNumber(text), value)) setText(undefined);
  }, [value]);
  const isWrong = text !== undefined && parseNumber(text) === undefined;
  return (
    <label class="wish">
      <span>your number</span>
      <input
        type="text"
        inputMode="text"
        spellcheck={false}
        autocomplete="off"
        value={text ?? (Number.isFinite(value) ? String(value) : numberText(value))}
        aria-invalid={isWrong}
        aria-describedby="wish-help"
        onInput={({ currentTarget }) => {
          setText(currentTarget.value);
          const next = parseNumber(currentTarget.value);
          if (next !== undefined) onValue(next);
        }}
        onBlur={() => setText(undefined)}
      />
      <small id="wish-help">{isWrong ? "not a number yet" : "such as 1/3, 2^-14, 6e-8, inf"}</small>
    </label>
  );
}

showPage(<FormatsPage />);
