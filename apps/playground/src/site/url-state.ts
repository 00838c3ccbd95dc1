import { useCallback, useEffect, useRef, useState } from "preact/hooks";

/** One value of a page's state, and how the address writes it. */
export interface Field<T> {
  readonly initial: T;
  /** The value of a text; undefined where the text is not one. */
  read(text: string): T | undefined;
  write(value: T): string;
}

/** A number from an interval. */
export const numberField = (
  initial: number,
  min: number = -Infinity,
  max: number = Infinity,
): Field<number> => ({
  initial,
  read: (text) => {
    const value = text === "" ? Number.NaN : Number(text);
    return value >= min && value <= max ? value : undefined;
  },
  write: (value) => (Object.is(value, -0) ? "-0" : String(value)),
});

/** An integer from an interval. */
export const integerField = (initial: number, min: number, max: number): Field<number> => {
  const { read, write } = numberField(initial, min, max);
  return {
    initial,
    read: (text) => {
      const value = read(text);
      return Number.isInteger(value) ? value : undefined;
    },
    write,
  };
};

/** One of a list of words. */
export const wordField = <Word extends string>(
  initial: Word,
  words: readonly Word[],
): Field<Word> => ({
  initial,
  read: (text) => words.find((word) => word === text),
  write: (word) => word,
});

/** A text of which a pattern decides whether it is one. */
export const textField = (initial: string, pattern: RegExp): Field<string> => ({
  initial,
  read: (text) => (pattern.test(text) ? text : undefined),
  write: (text) => text,
});

/** The fields of a state. */
export type Fields<State> = { readonly [Name in keyof State]: Field<State[Name]> };

/** The state that an address describes. What is missing in it or makes no sense has its initial value. */
export function readState<State extends object>(fields: Fields<State>, search: string): State {
  const parameters = new URLSearchParams(search);
  const entries = Object.entries<Field<unknown>>(fields).map(([name, field]) => {
    const text = parameters.get(name);
    return [name, (text === null ? undefined : field.read(text)) ?? field.initial];
  });
  return Object.fromEntries(entries) as State;
}

/** Most characters of a part of an address that are shown. */
const mostShown = 40;

/**
 * The parts of an address that a page would use if they made sense: values that do not, names in another case, and all but the first of a
 * name that stands twice. Each is as it would be typed, and short. Other names are left alone: sites that share links add theirs.
 */
export function strangePartsOf<State extends object>(
  fields: Fields<State>,
  search: string,
): readonly string[] {
  const seen = new Set<string>();
  const known = new Set(Object.keys(fields).map((name) => name.toLowerCase()));
  const strange = [...new URLSearchParams(search)].filter(([name, text]) => {
    const field = Object.hasOwn(fields, name) ? fields[name as keyof State] : undefined;
    const isFirst = !seen.has(name);
    seen.add(name);
    if (!known.has(name.toLowerCase())) return false;
    return field === undefined || !isFirst || field.read(text) === undefined;
  });
  return strange.map(([name, text]) => {
    const part = `${name}=${text}`;
    return part.length > mostShown ? `${part.slice(0, mostShown)}…` : part;
  });
}

/** The query of a state: only what differs from the initial state. */
export function writeState<State extends object>(fields: Fields<State>, state: State): string {
  const parameters = new URLSearchParams();
  for (const [name, field] of Object.entries<Field<unknown>>(fields)) {
    const text = field.write(state[name as keyof State]);
    if (text !== field.write(field.initial)) parameters.set(name, text);
  }
  const query = parameters.toString();
  return query === "" ? "" : `?${query}`;
}

// Browsers allow about a hundred changes of the address in half a minute; a slider would make more.
const addressInterval = 400;

/**
 * A state that the address holds: a copied address shows the same page. The second element changes some of its members. The
 * third has the parts of the address that the page was opened with and that said nothing to it.
 * @param fields the same object in each call
 */
export function useUrlState<State extends object>(
  fields: Fields<State>,
): readonly [State, (change: Partial<State>) => void, readonly string[]] {
  const [strange] = useState(() => strangePartsOf(fields, location.search));
  const [state, setState] = useState(() => readState(fields, location.search));
  const timer = useRef<number | undefined>(undefined);
  useEffect(() => {
    const onPopState = (): void => setState(readState(fields, location.search));
    addEventListener("popstate", onPopState);
    return () => removeEventListener("popstate", onPopState);
  }, [fields]);
  useEffect(() => {
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => {
      const query = writeState(fields, state);
      if (query !== location.search) {
        history.replaceState(null, "", `${location.pathname}${query}${location.hash}`);
      }
    }, addressInterval);
  }, [fields, state]);
  const change = useCallback(
    (part: Partial<State>) => setState((old) => ({ ...old, ...part })),
    [],
  );
  return [state, change, strange];
}
