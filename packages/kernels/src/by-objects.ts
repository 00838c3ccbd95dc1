interface Place<Made> {
  readonly after: WeakMap<object, Place<Made>>;
  readonly made: Map<string, Made>;
}

const emptyPlace = <Made>(): Place<Made> => ({ after: new WeakMap(), made: new Map() });

/**
 * What was made of some objects and a text of static choices, to be found again. Objects are themselves, whatever their names; they are
 * held weakly, and what was made of one goes when it goes.
 */
export class ByObjects<Made> {
  readonly #root: Place<Made> = emptyPlace();

  /** What was made of these, in this order; makes it where there is nothing yet. */
  get(objects: readonly object[], choices: string, make: () => Made): Made {
    let place = this.#root;
    for (const object of objects) {
      let next = place.after.get(object);
      if (!next) {
        next = emptyPlace();
        place.after.set(object, next);
      }
      place = next;
    }
    const known = place.made.get(choices);
    if (known !== undefined) return known;
    const made = make();
    place.made.set(choices, made);
    return made;
  }
}
