interface Place<Made> {
  readonly after: WeakMap<object, Place<Made>>;
  readonly made: Map<string, Made>;
}

const emptyPlace = <Made>(): Place<Made> => ({ after: new WeakMap(), made: new Map() });

/**
 * Caches values made from some objects and a text of static choices. Objects are compared by identity and held weakly: their values are
 * collected with them.
 */
export class ByObjects<Made> {
  readonly #root: Place<Made> = emptyPlace();

  /** The value for these objects, in this order; made on first use. */
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
