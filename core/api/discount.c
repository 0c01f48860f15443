#include "core/api/discount_internal.h"

#include <stdlib.h>

__extension__ typedef __int128 wide;

struct line {
    size_t item;                       /* index in the cart */
    int64_t quantity, price, discount; /* minor units */
};

/* The lines that a coupon applies to, dearest first. */
struct lines {
    struct line of[CART_ITEMS_MAX];
    size_t count;
};

/* ---- prices ---- */

static int64_t line_price(const struct cart_item *item, unsigned exponent)
{
    wide scale = MONEY_SCALE;
    for (; exponent > 0 && scale > 1; exponent--)
        scale /= 10;
    wide price = ((wide)item->price * (wide)item->quantity + scale / 2) / scale;
    for (; exponent > 0; exponent--) /* the currency's unit is finer than MONEY_SCALE */
        price *= 10;
    return price > CART_MOST ? CART_MOST + 1 : (int64_t)price;
}

int64_t cart_subtotal(const struct cart *cart)
{
    int64_t sum = 0;
    for (size_t i = 0; i < cart->count && sum <= CART_MOST; i++)
        sum += line_price(&cart->items[i], cart->exponent);
    return sum <= CART_MOST ? sum : -1;
}

/* ---- checks ---- */

static bool contains(struct str list, uint64_t wp_id)
{
    for (size_t i = 0; i < coupon_products(list); i++)
        if (coupon_product(list, i) == wp_id)
            return true;
    return false;
}

static bool is_eligible(const struct store_coupon *coupon, const struct cart_item *item)
{
    if (coupon->type == COUPON_FIXED_CART)
        return true;
    return (coupon->products.n == 0 || contains(coupon->products, item->wp_id)) &&
           !contains(coupon->excluded, item->wp_id) &&
           !(coupon->exclude_sale_items && item->on_sale);
}

enum discount_refusal coupon_usable(const struct store_coupon *coupon, int64_t now_ms)
{
    if (coupon->usage_limit != UINT64_MAX && coupon->usage_count >= coupon->usage_limit)
        return DISCOUNT_USED_UP;
    return coupon->expires_at != 0 && now_ms >= coupon->expires_at ? DISCOUNT_EXPIRED
                                                                   : DISCOUNT_APPLIES;
}

static enum discount_refusal check_products(const struct store_coupon *coupon,
                                            const struct cart *cart)
{
    bool required = coupon->products.n == 0, eligible = false, on_sale = false, excluded = false;
    for (size_t i = 0; i < cart->count; i++) {
        const struct cart_item *item = &cart->items[i];
        required = required || contains(coupon->products, item->wp_id);
        eligible = eligible || is_eligible(coupon, item);
        on_sale = on_sale || item->on_sale;
        excluded = excluded || contains(coupon->excluded, item->wp_id);
    }
    if (!required || (!eligible && cart->count > 0))
        return DISCOUNT_OTHER_PRODUCTS;
    if (coupon->type == COUPON_FIXED_CART && coupon->exclude_sale_items && on_sale)
        return DISCOUNT_ON_SALE;
    return coupon->type == COUPON_FIXED_CART && excluded ? DISCOUNT_EXCLUDED : DISCOUNT_APPLIES;
}

/* Exact amounts are compared, not rounded ones: 50.00 is below a minimum of 50.005. */
static enum discount_refusal check_coupon(const struct store_coupon *coupon,
                                          const struct cart *cart, int64_t now_ms, int64_t subtotal)
{
    wide sum = (wide)subtotal * MONEY_SCALE;
    for (unsigned i = 0; i < cart->exponent; i++)
        sum /= 10;
    enum discount_refusal why = coupon_usable(coupon, now_ms);
    if (why != DISCOUNT_APPLIES)
        return why;
    if (coupon->minimum > 0 && coupon->minimum > sum)
        return DISCOUNT_BELOW_MINIMUM;
    if (coupon->maximum > 0 && coupon->maximum < sum)
        return DISCOUNT_ABOVE_MAXIMUM;
    return check_products(coupon, cart);
}

/* ---- division among the lines ---- */

static int by_price(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    wide p = (wide)x->price * x->quantity, q = (wide)y->price * y->quantity;
    if (p != q)
        return p > q ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

static void select_lines(const struct store_coupon *coupon, const struct cart *cart,
                         struct lines *out)
{
    out->count = 0;
    for (size_t i = 0; i < cart->count; i++) {
        const struct cart_item *item = &cart->items[i];
        int64_t price = line_price(item, cart->exponent);
        if (price > 0 && item->quantity > 0 && is_eligible(coupon, item))
            out->of[out->count++] =
                (struct line){.item = i, .quantity = (int64_t)item->quantity, .price = price};
    }
    qsort(out->of, out->count, sizeof(*out->of), by_price);
}

/* Takes up to ${amount} off a line. Returns the amount taken. */
static int64_t take_off(struct line *line, wide amount)
{
    int64_t left = line->price - line->discount;
    int64_t taken = amount < left ? (int64_t)amount : left;
    line->discount += taken;
    return taken;
}

/* Takes one unit off each piece in turn, until ${amount} is used up. */
static void take_remainder(struct lines *lines, int64_t amount)
{
    for (size_t i = 0; i < lines->count && amount > 0; i++)
        amount -= take_off(&lines->of[i],
                           lines->of[i].quantity < amount ? lines->of[i].quantity : amount);
}

static void percent(struct lines *lines, int64_t amount)
{
    const wide whole = (wide)100 * MONEY_SCALE;
    int64_t given = 0;
    wide all = 0;
    for (size_t i = 0; i < lines->count; i++) {
        given += take_off(&lines->of[i], (wide)lines->of[i].price * amount / whole);
        all += lines->of[i].price;
    }
    take_remainder(lines, (int64_t)((all * amount + whole / 2) / whole) - given);
}

static int64_t fixed_product(struct lines *lines, int64_t amount)
{
    int64_t given = 0;
    for (size_t i = 0; i < lines->count; i++)
        given += take_off(&lines->of[i], (wide)amount * lines->of[i].quantity);
    return given;
}

/* Number of pieces in the lines that still have a price above zero. */
static int64_t count_pieces(const struct lines *lines)
{
    int64_t sum = 0;
    for (size_t i = 0; i < lines->count; i++)
        sum += lines->of[i].discount < lines->of[i].price ? lines->of[i].quantity : 0;
    return sum;
}

/* Each round takes the full share of each piece, or uses up a line. */
static void fixed_cart(struct lines *lines, int64_t amount)
{
    for (int64_t count = count_pieces(lines); amount > 0 && count > 0;
         count = count_pieces(lines)) {
        if (amount < count) {
            take_remainder(lines, amount);
            return;
        }
        amount -= fixed_product(lines, amount / count);
    }
}

static int64_t minor_units(int64_t money, unsigned exponent)
{
    const struct cart_item one = {.quantity = 1, .price = money};
    return line_price(&one, exponent);
}

enum discount_refusal discount_apply(const struct store_coupon *coupon, const struct cart *cart,
                                     int64_t now_ms, struct discount_totals *out)
{
    struct lines lines;
    int64_t subtotal = cart_subtotal(cart);
    enum discount_refusal why = check_coupon(coupon, cart, now_ms, subtotal);
    if (why != DISCOUNT_APPLIES)
        return why;
    select_lines(coupon, cart, &lines);
    if (coupon->type == COUPON_PERCENT)
        percent(&lines, coupon->amount);
    else if (coupon->type == COUPON_FIXED_PRODUCT)
        fixed_product(&lines, minor_units(coupon->amount, cart->exponent));
    else
        fixed_cart(&lines, minor_units(coupon->amount, cart->exponent));
    *out = (struct discount_totals){.subtotal = subtotal};
    for (size_t i = 0; i < lines.count; i++) {
        out->each[lines.of[i].item] = lines.of[i].discount;
        out->discount += lines.of[i].discount;
    }
    out->price = out->subtotal - out->discount;
    return DISCOUNT_APPLIES;
}
