import { RecipeError } from "../errors.js";

/** Refuses the value of a member. */
export function mustBe(member: string, value: unknown, what: string): never {
  throw new RecipeError(`${member} is ${JSON.stringify(value)}: it must be ${what}`);
}
