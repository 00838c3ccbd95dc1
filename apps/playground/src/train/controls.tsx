import type { VNode } from "preact";
import { numberText, powerText } from "../formats/number-text.js";
import { mostSetups, type TaskName, type TrainConfig, taskLabels, taskNames } from "./config.js";
import { type SetupId, setups } from "./setups.js";

interface ControlsProps {
  readonly config: TrainConfig;
  readonly onChange: (change: Partial<TrainConfig>) => void;
}

const rates = [
  1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1,
];

/** What is trained, in which precisions, and what makes it hard. */
export function Controls({ config, onChange }: ControlsProps): VNode {
  const { task, setups: chosen, lr, shrink, gain, scale, seed } = config;
  const toggle = (id: SetupId): void => {
    const next = setups.filter((setup) => (setup.id === id) !== chosen.includes(setup.id));
    if (next.length > 0 && next.length <= mostSetups)
      onChange({ setups: next.map((setup) => setup.id) });
  };
  const nearest = rates.reduce(
    (best, rate, i) =>
      Math.abs(Math.log(rate / lr)) < Math.abs(Math.log((rates[best] as number) / lr)) ? i : best,
    0,
  );
  return (
    <details class="experiment">
      <summary>Make your own experiment</summary>
      <div class="controls">
        <label>
          train
          <select
            value={task}
            onChange={({ currentTarget }) => onChange({ task: currentTarget.value as TaskName })}
          >
            {taskNames.map((name) => (
              <option key={name} value={name}>
                {taskLabels[name]}
              </option>
            ))}
          </select>
        </label>
        <label>
          seed
          <input
            type="number"
            min={0}
            max={9999}
            value={seed}
            onChange={({ currentTarget }) => {
              // Firefox takes any text, and says that it is an empty one.
              const next = currentTarget.value === "" ? Number.NaN : Number(currentTarget.value);
              const isSeed = Number.isInteger(next) && next >= 0 && next <= 9999;
              currentTarget.setCustomValidity(isSeed ? "" : "a whole number from 0 to 9999");
              if (isSeed) onChange({ seed: next });
              else currentTarget.reportValidity();
            }}
            onBlur={({ currentTarget }) => {
              // What is shown is what trains.
              currentTarget.value = String(seed);
              currentTarget.setCustomValidity("");
            }}
          />
        </label>
        <Slider
          label="learning rate"
          text={numberText(lr)}
          min={0}
          max={rates.length - 1}
          value={nearest}
          onValue={(i) => onChange({ lr: rates[i] as number })}
        />
        <Slider
          label="loss × 2⁻ⁿ"
          text={powerText(-shrink)}
          min={0}
          max={30}
          value={shrink}
          onValue={(n) => onChange({ shrink: n })}
        />
        <Slider
          label="inputs ×"
          text={powerText(gain)}
          min={0}
          max={30}
          value={gain}
          onValue={(n) => onChange({ gain: n })}
        />
        <Slider
          label="first loss scale"
          text={powerText(scale)}
          min={0}
          max={40}
          value={scale}
          onValue={(n) => onChange({ scale: n })}
        />
      </div>
      <fieldset class="setups">
        <legend>in up to four precisions</legend>
        {setups.map(({ id, label, about }) => (
          <label key={id}>
            <input
              type="checkbox"
              checked={chosen.includes(id)}
              disabled={chosen.includes(id) ? chosen.length === 1 : chosen.length >= mostSetups}
              onChange={() => toggle(id)}
            />
            <span>
              <b>{label}</b> {about}
            </span>
          </label>
        ))}
      </fieldset>
    </details>
  );
}

interface SliderProps {
  readonly label: string;
  readonly text: string;
  readonly min: number;
  readonly max: number;
  readonly value: number;
  readonly onValue: (value: number) => void;
}

function Slider({ label, text, min, max, value, onValue }: SliderProps): VNode {
  return (
    <label class="slider">
      <span>
        {label} <b>{text}</b>
      </span>
      <input
        type="range"
        min={min}
        max={max}
        value={value}
        aria-valuetext={text}
        onChange={({ currentTarget }) => onValue(Number(currentTarget.value))}
      />
    </label>
  );
}
