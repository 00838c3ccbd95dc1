import {
  describeStateDictKeys,
  type Module,
  type StateDict,
  type StateDictKeys,
  torchPlaces,
} from "@halfstep/nn";

/** What keeps weights of others from fitting a model, in a line for people: names in torch's spelling, with both shapes where they differ. */
export function describeMisfits(
  model: Module,
  weights: StateDict,
  { missing, unexpected, misshapen }: StateDictKeys,
): string {
  const wanted = new Map(
    torchPlaces(model).map(({ name, order, variable: { shape } }) => [
      name,
      order?.length === shape.length ? order.map((d) => shape[d]) : shape,
    ]),
  );
  const shaped = misshapen.map((name) => {
    const [given, own] = [weights[name]?.shape, wanted.get(name)];
    return given && own ? `${name} is [${given}], and the model's [${own}]` : name;
  });
  return describeStateDictKeys({ missing, unexpected, misshapen: shaped });
}
