/** Clients, as far as an address tells them apart: limits count by them. */
import { isIPv4, isIPv6 } from "node:net";

/** The bits of an IPv6 address by which clients differ: providers give each customer at least so large a network, with 2^64 addresses. */
const PREFIX = 64;
/** The start of an IPv4 address that is written as IPv6, as sockets for both do. */
const MAPPED = /^0:0:0:0:0:ffff:/;

/** The eight words of an IPv6 address, without leading zeros. */
function words(address: string): string[] {
  // The parser of addresses writes each in one way: small letters, no IPv4 at the end, the longest run of zeros as "::".
  const [left, right] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::").map((part) => part.split(":").filter(Boolean)) as [string[], string[]?];
  return right ? [...left, ...Array<string>(8 - left.length - right.length).fill("0"), ...right] : left;
}

/**
 * The client at this address: the IPv4 address, also if it is written as IPv6, or the network of an IPv6 address. Other text stays as it is: a proxy may have names for
 * its clients.
 */
export function clientOf(address: string): string {
  const [plain] = address.split("%") as [string];
  if (isIPv4(plain) || !isIPv6(plain)) return address;
  const all = words(plain);
  if (!MAPPED.test(all.join(":"))) return `${all.slice(0, PREFIX / 16).join(":")}::/${PREFIX}`;
  return all.slice(6).flatMap((word) => [Number.parseInt(word, 16) >> 8, Number.parseInt(word, 16) & 255]).join(".");
}
