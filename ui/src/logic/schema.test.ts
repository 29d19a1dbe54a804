import { describe, expect, it } from "vitest";
import { fieldsOf, identityInWords } from "./schema";

const CONTACT = {
  required: ["name"],
  properties: {
    tags: { type: "array", "x-woodrat-merge": "union" },
    name: { type: "string", "x-woodrat-index": true, description: "Who it is." },
    state: { enum: ["open", "shut"] },
  },
  "x-woodrat-identity": [[{ field: "email", fold: ["trim-1"] }], ["name", "company"]],
};

describe("a schema in words", () => {
  it("lists fields by name, with how claims merge", () =>
    expect(fieldsOf(CONTACT).map((field) => [field.name, field.type, field.merge, field.required])).toEqual([
      ["name", "string", "the latest wins", true],
      ["state", "one of open, shut", "the latest wins", false],
      ["tags", "array", "all elements are kept", false],
    ]));
  it("says what identifies a record", () =>
    expect(identityInWords(CONTACT)).toEqual([
      "Two records are the same if they share email",
      "or, where that is not stated, they share name and company",
    ]));
});
