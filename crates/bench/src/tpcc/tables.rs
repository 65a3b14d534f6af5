//! TPC-C's nine tables (clause 1.3), the warehouse first in each key, and their columns' places.

use crate::workload::schema::TableSpec;

/// Places of the tables in a load.
pub(super) const WAREHOUSE: usize = 0;
pub(super) const DISTRICT: usize = 1;
pub(super) const CUSTOMER: usize = 2;
pub(super) const HISTORY: usize = 3;
pub(super) const NEW_ORDER: usize = 4;
pub(super) const ORDERS: usize = 5;
pub(super) const ORDER_LINE: usize = 6;
pub(super) const ITEM: usize = 7;
pub(super) const STOCK: usize = 8;

/// Columns that transactions use, by their places.
pub(super) mod column {
    pub const W_NAME: usize = 1;
    pub const W_TAX: usize = 7;
    pub const W_YTD: usize = 8;

    pub const D_NAME: usize = 2;
    pub const D_TAX: usize = 8;
    pub const D_YTD: usize = 9;
    pub const D_NEXT_O_ID: usize = 10;

    pub const C_ID: usize = 2;
    pub const C_FIRST: usize = 3;
    pub const C_CREDIT: usize = 13;
    pub const C_DISCOUNT: usize = 15;
    pub const C_BALANCE: usize = 16;
    pub const C_YTD_PAYMENT: usize = 17;
    pub const C_PAYMENT_CNT: usize = 18;
    pub const C_DELIVERY_CNT: usize = 19;
    pub const C_DATA: usize = 20;

    pub const NO_O_ID: usize = 2;

    pub const O_ID: usize = 2;
    pub const O_C_ID: usize = 3;
    pub const O_CARRIER_ID: usize = 5;

    pub const OL_I_ID: usize = 4;
    pub const OL_DELIVERY_D: usize = 6;
    pub const OL_AMOUNT: usize = 8;

    pub const I_PRICE: usize = 3;
    pub const I_DATA: usize = 4;

    pub const S_QUANTITY: usize = 2;
    pub const S_DIST_01: usize = 3;
    pub const S_YTD: usize = 13;
    pub const S_ORDER_CNT: usize = 14;
    pub const S_REMOTE_CNT: usize = 15;
    pub const S_DATA: usize = 16;
}

/// The index by which customers are found by their last names.
pub(super) const CUSTOMER_BY_NAME: &str = "customer_by_name";
/// The index by which a customer's last order is found.
pub(super) const ORDERS_BY_CUSTOMER: &str = "orders_by_customer";

/// The tables; with `papers` only those may leave memory that the papers evict (004 §5).
pub(super) fn tables(papers: bool) -> Vec<TableSpec> {
    let mut tables = vec![
        TableSpec::new(
            "warehouse",
            "w_id integer, w_name varchar(10), w_street_1 varchar(20), w_street_2 varchar(20), \
             w_city varchar(20), w_state char(2), w_zip char(9), w_tax numeric(4,4), \
             w_ytd numeric(12,2)",
            &["w_id"],
            &["w_id"],
        ),
        TableSpec::new(
            "district",
            "d_w_id integer, d_id integer, d_name varchar(10), d_street_1 varchar(20), \
             d_street_2 varchar(20), d_city varchar(20), d_state char(2), d_zip char(9), \
             d_tax numeric(4,4), d_ytd numeric(12,2), d_next_o_id integer",
            &["d_w_id", "d_id"],
            &["d_w_id"],
        ),
        TableSpec {
            indexes: &[(CUSTOMER_BY_NAME, &["c_w_id", "c_d_id", "c_last"])],
            ..TableSpec::new(
                "customer",
                "c_w_id integer, c_d_id integer, c_id integer, c_first varchar(16), \
                 c_middle char(2), c_last varchar(16), c_street_1 varchar(20), \
                 c_street_2 varchar(20), c_city varchar(20), c_state char(2), c_zip char(9), \
                 c_phone char(16), c_since timestamp, c_credit char(2), \
                 c_credit_lim numeric(12,2), c_discount numeric(4,4), c_balance numeric(12,2), \
                 c_ytd_payment numeric(12,2), c_payment_cnt integer, c_delivery_cnt integer, \
                 c_data varchar(500)",
                &["c_w_id", "c_d_id", "c_id"],
                &["c_w_id"],
            )
        },
        TableSpec::new(
            "history",
            "h_w_id integer, h_d_id integer, h_c_w_id integer, h_c_d_id integer, \
             h_c_id integer, h_date timestamp, h_amount numeric(6,2), h_data varchar(24)",
            &[],
            &["h_w_id"],
        ),
        TableSpec {
            ordered: true,
            ..TableSpec::new(
                "new_order",
                "no_w_id integer, no_d_id integer, no_o_id integer",
                &["no_w_id", "no_d_id", "no_o_id"],
                &["no_w_id"],
            )
        },
        TableSpec {
            indexes: &[(ORDERS_BY_CUSTOMER, &["o_w_id", "o_d_id", "o_c_id", "o_id"])],
            ..TableSpec::new(
                "orders",
                "o_w_id integer, o_d_id integer, o_id integer, o_c_id integer, \
                 o_entry_d timestamp, o_carrier_id integer null, o_ol_cnt integer, \
                 o_all_local integer",
                &["o_w_id", "o_d_id", "o_id"],
                &["o_w_id"],
            )
        },
        TableSpec {
            ordered: true,
            ..TableSpec::new(
                "order_line",
                "ol_w_id integer, ol_d_id integer, ol_o_id integer, ol_number integer, \
                 ol_i_id integer, ol_supply_w_id integer, ol_delivery_d timestamp null, \
                 ol_quantity integer, ol_amount numeric(6,2), ol_dist_info char(24)",
                &["ol_w_id", "ol_d_id", "ol_o_id", "ol_number"],
                &["ol_w_id"],
            )
        },
        TableSpec::new(
            "item",
            "i_id integer, i_im_id integer, i_name varchar(24), i_price numeric(5,2), \
             i_data varchar(50)",
            &["i_id"],
            &["i_id"],
        ),
        TableSpec::new(
            "stock",
            "s_w_id integer, s_i_id integer, s_quantity integer, s_dist_01 char(24), \
             s_dist_02 char(24), s_dist_03 char(24), s_dist_04 char(24), s_dist_05 char(24), \
             s_dist_06 char(24), s_dist_07 char(24), s_dist_08 char(24), s_dist_09 char(24), \
             s_dist_10 char(24), s_ytd integer, s_order_cnt integer, s_remote_cnt integer, \
             s_data varchar(50)",
            &["s_w_id", "s_i_id"],
            &["s_w_id"],
        ),
    ];
    if papers {
        for table in &mut tables {
            table.evictable = matches!(table.name, "history" | "orders" | "order_line");
        }
    }
    tables
}
