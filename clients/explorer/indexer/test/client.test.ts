/** Addresses that limits count as one client; proxy.test.ts tests the limits. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { clientOf } from "../src/api/client";

test("a client is an IPv4 address, however it is written, or a network of 2^64 addresses", () => {
  for (const [address, client] of [
    ["192.0.2.7", "192.0.2.7"],
    ["::ffff:192.0.2.7", "192.0.2.7"],
    ["::FFFF:C000:0207", "192.0.2.7"],
    ["0:0:0:0:0:ffff:c000:207", "192.0.2.7"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:DB8:0001:2::", "2001:db8:1:2::/64"],
    ["2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"],
    ["2001:db8:1:3::", "2001:db8:1:3::/64"],
    ["2001:db8::1", "2001:db8:0:0::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["::1", "0:0:0:0::/64"],
    // Other ways to embed an IPv4 address are networks like any other.
    ["::192.0.2.7", "0:0:0:0::/64"],
    ["64:ff9b::192.0.2.7", "64:ff9b:0:0::/64"],
    ["unknown", "unknown"],
  ] as const)
    assert.equal(clientOf(address), client, address);
});
